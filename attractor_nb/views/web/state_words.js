// The words that people read for the states of runs and of stages. They are those of model/states.py, which a test
// compares with these; no other module has words of its own.

import { __ } from "./wording.js";

const RUN_WORDS = {
  ready: __("ready"),
  not_started: __("not started"),
  running: __("running"),
  resumed: __("running"),
  restarted: __("running"),
  retrying: __("running"),
  waiting: __("waiting"),
  paused: __("paused"),
  interrupted: __("stopped"),
  cut_off: __("stopped"),
  abandoned: __("stopped"),
  fail: __("failed"),
  failed: __("failed"),
  success: __("completed"),
  completed: __("completed"),
};
const STAGE_WORDS = {
  pending: __("pending"),
  running: __("running"),
  waiting: __("waiting"),
  retrying: __("retrying"),
  success: __("success"),
  partial_success: __("partial success"),
  fail: __("failed"),
  retry: __("retry"),
  skipped: __("skipped"),
  cached: __("cached"),
  cut_off: __("cut off"),
};

// Of a run, a row of a map, or a child run.
export const runWord = (status) => RUN_WORDS[status.replace(" ", "_")] || status;
export const stageWord = (status) => STAGE_WORDS[status.replace(" ", "_")] || status;
