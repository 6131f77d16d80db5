// The words of DOT, made by `make docs` from the tables of attributes, shapes, keywords, rules and context keys.

export const ATTRIBUTES = {
  "allow_many_exits": [
    {
      "of": "the graph",
      "value": "boolean",
      "default": "false",
      "meaning": "More than one exit node is accepted."
    }
  ],
  "allow_partial": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "false",
      "meaning": "Exhausted retries end in partial success."
    }
  ],
  "allowed_tools": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Tools that the model may call: `read`, `write`, `list`, `run`, own ones, `mcp:SERVER/TOOL`."
    }
  ],
  "attach": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Images and PDFs that the model is shown: `${photo}`, paths in the working directory; commas."
    }
  ],
  "auto_status": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "false",
      "meaning": "A handler that reports nothing counts as success."
    }
  ],
  "cache": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "true",
      "meaning": "This stage's result may be taken from the cache of the run."
    }
  ],
  "cache.context": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Context keys that a command or custom handler reads, with commas; `a.*` for all that begin so."
    }
  ],
  "cache.files": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Paths and patterns, with commas: files whose content the result depends on."
    }
  ],
  "carry": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Context keys, with commas, that the prompt carries whole, such as `plan.response`."
    }
  ],
  "class": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Comma-separated classes for the model stylesheet."
    }
  ],
  "condition": [
    {
      "of": "an edge",
      "value": "string",
      "default": "",
      "meaning": "Guard of the edge (spec 10)."
    }
  ],
  "conditional_outcome": [
    {
      "of": "the graph",
      "value": "previous, own",
      "default": "previous",
      "meaning": "What a diamond's edges see: the outcome of the stage before it, or its `own`."
    }
  ],
  "default": [
    {
      "of": "an edge",
      "value": "boolean",
      "default": "false",
      "meaning": "Taken when nothing else matches (ruling 12)."
    }
  ],
  "default_fidelity": [
    {
      "of": "the graph",
      "value": "full, truncate, compact, summary:low, summary:medium, summary:high",
      "default": "",
      "meaning": "How much earlier context prompts carry."
    }
  ],
  "default_max_retries": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "0",
      "meaning": "Additional attempts for nodes that omit `max_retries`."
    }
  ],
  "default_max_retry": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "0",
      "meaning": "The spec's name of `default_max_retries`. Another name of `default_max_retries`."
    }
  ],
  "endpoint.NAME.api": [
    {
      "of": "the graph",
      "value": "string",
      "default": "chat",
      "meaning": "What it speaks: `chat` or `responses`, both of OpenAI."
    }
  ],
  "endpoint.NAME.key_env": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "The environment variable that holds its key; none by default."
    }
  ],
  "endpoint.NAME.requests_per_minute": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "",
      "meaning": "Requests that all runs of a process make there in a minute; NAME may be a provider's."
    }
  ],
  "endpoint.NAME.tokens_per_minute": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "",
      "meaning": "Tokens, sent and received, that they may use there in a minute."
    }
  ],
  "endpoint.NAME.url": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Address of a server of your own; `NAME:model` is a model there."
    }
  ],
  "error_policy": [
    {
      "of": "a node",
      "value": "continue, fail_fast, ignore",
      "default": "continue",
      "meaning": "What a failed branch, or item, means for the others (spec 4.8)."
    }
  ],
  "fallback_retry_target": [
    {
      "of": "the graph",
      "value": "node id",
      "default": "",
      "meaning": "Where to go when `retry_target` is missing."
    },
    {
      "of": "a node",
      "value": "node id",
      "default": "",
      "meaning": "Where to go when `retry_target` is missing."
    }
  ],
  "fidelity": [
    {
      "of": "a node",
      "value": "full, truncate, compact, summary:low, summary:medium, summary:high",
      "default": "",
      "meaning": "How much earlier context the prompt carries."
    },
    {
      "of": "an edge",
      "value": "full, truncate, compact, summary:low, summary:medium, summary:high",
      "default": "",
      "meaning": "Fidelity of the target's prompt."
    }
  ],
  "for_each": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The stage is run once for each item of a list: `item in plan.verdict.files`."
    }
  ],
  "function": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The registered Python function that this stage calls, by its name."
    }
  ],
  "goal": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "What the pipeline is for; `$goal` in prompts, `graph.goal` in the context."
    }
  ],
  "goal_gate": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "false",
      "meaning": "This node must succeed before the run may end."
    }
  ],
  "human.default_choice": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The choice taken when a gate times out: target, key or label."
    }
  ],
  "human.form": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Name of the registered model that is filled in as a form at a gate."
    }
  ],
  "human.prompt": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Longer text under a gate's question; variables as in `prompt`."
    }
  ],
  "human.review": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "What a gate shows beside its question: files of stages, `plan/response.md`, with commas."
    }
  ],
  "human.timeout": [
    {
      "of": "a node",
      "value": "duration",
      "default": "",
      "meaning": "How long a gate waits for its answer."
    }
  ],
  "human.type": [
    {
      "of": "a node",
      "value": "multiple_choice, yes_no, confirmation, freeform, multi_select",
      "default": "multiple_choice",
      "meaning": "What kind of answer a gate asks for (spec 6.2)."
    }
  ],
  "idempotent": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "false",
      "meaning": "The tool may be run again without harm."
    }
  ],
  "inputs": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "What a run is given: names with commas, `ticket, tone=plain` with a default."
    }
  ],
  "inputs_schema": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "The registered model whose fields are the inputs, with their types."
    }
  ],
  "isolation": [
    {
      "of": "the graph",
      "value": "none, workspace, worktree",
      "default": "",
      "meaning": "A place of its own for the run: a `workspace` in the run directory, or a git `worktree`."
    }
  ],
  "join_k": [
    {
      "of": "a node",
      "value": "integer",
      "default": "",
      "meaning": "Branches, or items, that must succeed under `k_of_n`."
    }
  ],
  "join_policy": [
    {
      "of": "a node",
      "value": "wait_all, first_success, k_of_n, quorum",
      "default": "wait_all",
      "meaning": "When a fan-out, or a stage with `for_each`, is complete (spec 4.8)."
    }
  ],
  "join_quorum": [
    {
      "of": "a node",
      "value": "number",
      "default": "",
      "meaning": "Fraction of branches, or items, that must succeed under `quorum`."
    }
  ],
  "label": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Display name of the pipeline."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Display name; the node id by default."
    },
    {
      "of": "an edge",
      "value": "string",
      "default": "",
      "meaning": "Caption and routing key."
    },
    {
      "of": "a subgraph",
      "value": "string",
      "default": "",
      "meaning": "Title of the group; derives a class (spec 2.10)."
    }
  ],
  "llm.base_url": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Base URL for the graph's model and other models of the same provider. No API key is sent."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Address of this model's server, which gets no key; `http://` or `https://`."
    }
  ],
  "llm.context_tokens": [
    {
      "of": "a node",
      "value": "integer",
      "default": "",
      "meaning": "Tokens that the model's window holds; a longer thread is compacted (spec 5.4)."
    }
  ],
  "llm.extra.NAME": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Option that is passed on to the models of all nodes."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Option that is passed on, such as `top_p`, `seed`, `stop`."
    }
  ],
  "llm.max_tokens": [
    {
      "of": "a node",
      "value": "integer",
      "default": "",
      "meaning": "Tokens after which a response is cut off."
    }
  ],
  "llm.system_prompt": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "System prompt of the models of nodes that name none."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "System prompt of this node's model; variables as in `prompt`."
    }
  ],
  "llm.temperature": [
    {
      "of": "a node",
      "value": "number",
      "default": "",
      "meaning": "Sampling temperature of the model; 0 is the least random."
    }
  ],
  "llm_fallback": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Models to ask in turn when a node's own fails, for nodes that name none."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Models to ask in turn when this one fails: `model` or `provider:model`, with commas."
    }
  ],
  "llm_fallback_on": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "When else to ask them, for nodes that do not say."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "When else to ask them: `overlong` (the prompt does not fit), `refusal`, with commas."
    }
  ],
  "llm_model": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Model for nodes that name none."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Model of this node."
    }
  ],
  "llm_provider": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Provider for nodes that name none."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Provider of this node."
    }
  ],
  "loop_restart": [
    {
      "of": "an edge",
      "value": "boolean",
      "default": "false",
      "meaning": "Start over at the target in a fresh run directory."
    }
  ],
  "manager.actions": [
    {
      "of": "a node",
      "value": "string",
      "default": "observe,wait",
      "meaning": "What the manager does in a cycle: observe, steer, wait."
    }
  ],
  "manager.escalate": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Condition on which the manager stops its child and fails."
    }
  ],
  "manager.guard": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Condition for going on; while it does not hold, the manager steers."
    }
  ],
  "manager.guard_function": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Registered function that judges the child, by its name."
    }
  ],
  "manager.instructions": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "What the manager tells its child when it steers."
    }
  ],
  "manager.max_cycles": [
    {
      "of": "a node",
      "value": "integer",
      "default": "1000",
      "meaning": "Looks at the child before giving up."
    }
  ],
  "manager.poll_interval": [
    {
      "of": "a node",
      "value": "duration",
      "default": "45s",
      "meaning": "Pause between two looks at the child."
    }
  ],
  "manager.steer_cooldown": [
    {
      "of": "a node",
      "value": "duration",
      "default": "1m",
      "meaning": "Least time between two instructions to a child."
    }
  ],
  "manager.stop_condition": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Condition that ends the supervision."
    }
  ],
  "max_budget_usd": [
    {
      "of": "the graph",
      "value": "number",
      "default": "",
      "meaning": "Cost after which the run is stopped, in USD."
    },
    {
      "of": "a node",
      "value": "number",
      "default": "",
      "meaning": "Cost in USD of all attempts and visits after which it fails."
    }
  ],
  "max_child_depth": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "8",
      "meaning": "How deep pipelines may be nested in this one."
    }
  ],
  "max_duration": [
    {
      "of": "the graph",
      "value": "duration",
      "default": "",
      "meaning": "Time after which the run is stopped."
    }
  ],
  "max_goal_gate_redirects": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "10",
      "meaning": "How often unsatisfied gates may redirect."
    }
  ],
  "max_items": [
    {
      "of": "a node",
      "value": "integer",
      "default": "100",
      "meaning": "Items that the list of `for_each` may have."
    }
  ],
  "max_node_visits": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "",
      "meaning": "Visits any one node may get."
    }
  ],
  "max_parallel": [
    {
      "of": "a node",
      "value": "integer",
      "default": "4",
      "meaning": "Branches, or items, that run at the same time."
    }
  ],
  "max_restarts": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "10",
      "meaning": "How often `loop_restart` edges may be taken."
    }
  ],
  "max_retries": [
    {
      "of": "a node",
      "value": "integer",
      "default": "",
      "meaning": "Additional attempts beyond the first."
    }
  ],
  "max_steps": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "1000",
      "meaning": "Stages the run may execute."
    }
  ],
  "max_tokens_total": [
    {
      "of": "the graph",
      "value": "integer",
      "default": "",
      "meaning": "Tokens after which the run is stopped."
    },
    {
      "of": "a node",
      "value": "integer",
      "default": "",
      "meaning": "Tokens of all attempts and visits after which it fails."
    }
  ],
  "mcp.NAME.command": [
    {
      "of": "the graph",
      "value": "command",
      "default": "",
      "meaning": "Command that starts the MCP server NAME, over stdin and stdout."
    }
  ],
  "mcp.NAME.env": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Comma-separated environment variables to pass to server NAME in addition to the usual ones."
    }
  ],
  "mcp.NAME.headers": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Headers that the server NAME gets, with commas: `Authorization: Bearer $A_TOKEN`; one variable in each."
    }
  ],
  "mcp.NAME.timeout": [
    {
      "of": "the graph",
      "value": "duration",
      "default": "2m",
      "meaning": "How long one tool of the server NAME may take."
    }
  ],
  "mcp.NAME.url": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Address of the MCP server NAME, over streamable HTTP; in place of a command."
    }
  ],
  "merge": [
    {
      "of": "a node",
      "value": "none, best, all",
      "default": "none",
      "meaning": "Which context changes of the branches the fan-in copies into the run (spec 4.9)."
    }
  ],
  "model_stylesheet": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "CSS-like rules that give nodes their model (spec 8)."
    }
  ],
  "on_fail": [
    {
      "of": "the graph",
      "value": "route, continue",
      "default": "route",
      "meaning": "`continue` lets a failed stage leave by any edge."
    }
  ],
  "on_interrupted": [
    {
      "of": "a node",
      "value": "rerun, ask, fail",
      "default": "",
      "meaning": "What a resume does with a stage that was cut off: run it again, ask, or fail."
    }
  ],
  "pipeline.dotfile": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The pipeline that this stage runs (spec 9.4)."
    }
  ],
  "pipeline.inputs": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "What it begins with: `name=context.key, name='text', name=3`."
    }
  ],
  "pipeline.name": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The registered pipeline that this stage runs, by its name."
    }
  ],
  "pipeline.outputs": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "What comes back: `key=context.key_of_the_child`."
    }
  ],
  "prompt": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Instruction of the stage; `$goal`, `$name` and `${node.response}` are replaced by their values."
    }
  ],
  "rankdir": [
    {
      "of": "the graph",
      "value": "TB, LR, BT, RL",
      "default": "",
      "meaning": "Direction of the drawing. Default: top to bottom, or left to right if the graph fits in one row."
    }
  ],
  "reasoning_effort": [
    {
      "of": "the graph",
      "value": "low, medium, high",
      "default": "",
      "meaning": "Reasoning effort for nodes that name none."
    },
    {
      "of": "a node",
      "value": "low, medium, high",
      "default": "high",
      "meaning": "Reasoning effort of the model."
    }
  ],
  "response_schema": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "JSON Schema of the response, or the name of a registered model (ruling 26)."
    }
  ],
  "retry_policy": [
    {
      "of": "the graph",
      "value": "none, standard, aggressive, linear, patient",
      "default": "",
      "meaning": "Backoff preset for nodes without one."
    },
    {
      "of": "a node",
      "value": "none, standard, aggressive, linear, patient",
      "default": "",
      "meaning": "Backoff preset between attempts (spec 3.6)."
    }
  ],
  "retry_target": [
    {
      "of": "the graph",
      "value": "node id",
      "default": "",
      "meaning": "Where to go when a goal gate is unsatisfied at the exit."
    },
    {
      "of": "a node",
      "value": "node id",
      "default": "",
      "meaning": "Where to go when this node has failed."
    }
  ],
  "shape": [
    {
      "of": "a node",
      "value": "string",
      "default": "box",
      "meaning": "Shape of the drawing, and by it the handler type (spec 2.8)."
    }
  ],
  "stack.child_autostart": [
    {
      "of": "a node",
      "value": "boolean",
      "default": "true",
      "meaning": "`true`: start the child run. `false`: attach to a running one."
    }
  ],
  "stack.child_dotfile": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "The pipeline that manager nodes supervise (spec 4.11)."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The pipeline that this manager supervises."
    }
  ],
  "stack.child_pipeline": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "The registered pipeline that manager nodes supervise, by its name."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "The registered pipeline that this manager supervises, by its name."
    }
  ],
  "stack.child_run": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Run directory of a child that somebody else started."
    }
  ],
  "stack.child_workdir": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "Directory in which the supervised pipeline's commands run."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Directory in which this child's commands run."
    }
  ],
  "strict_gates": [
    {
      "of": "the graph",
      "value": "boolean",
      "default": "false",
      "meaning": "A goal gate that was never visited fails the run."
    }
  ],
  "thread_id": [
    {
      "of": "the graph",
      "value": "string",
      "default": "",
      "meaning": "The thread that nodes with `full` fidelity share by default."
    },
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Thread to reuse under `full` fidelity."
    },
    {
      "of": "an edge",
      "value": "string",
      "default": "",
      "meaning": "Thread of the target."
    }
  ],
  "timeout": [
    {
      "of": "a node",
      "value": "duration",
      "default": "",
      "meaning": "Time one attempt may take."
    }
  ],
  "tool_command": [
    {
      "of": "a node",
      "value": "command",
      "default": "",
      "meaning": "Command of a tool stage (spec 4.10). Never interpolated."
    }
  ],
  "tool_hooks.post": [
    {
      "of": "the graph",
      "value": "command",
      "default": "",
      "meaning": "Command after each tool call of a model (spec 9.7)."
    },
    {
      "of": "a node",
      "value": "command",
      "default": "",
      "meaning": "Command after each tool call of this node's model."
    }
  ],
  "tool_hooks.pre": [
    {
      "of": "the graph",
      "value": "command",
      "default": "",
      "meaning": "Command before each tool call of a model (spec 9.7)."
    },
    {
      "of": "a node",
      "value": "command",
      "default": "",
      "meaning": "Command before each tool call of this node's model."
    }
  ],
  "tool_hooks.timeout": [
    {
      "of": "the graph",
      "value": "duration",
      "default": "30s",
      "meaning": "Time each of these commands may take."
    },
    {
      "of": "a node",
      "value": "duration",
      "default": "30s",
      "meaning": "Time each of these commands may take."
    }
  ],
  "tool_shell": [
    {
      "of": "a node",
      "value": "sh, bash",
      "default": "sh",
      "meaning": "What runs `tool_command`: `sh`, or `bash` with `pipefail`, where a pipe fails with its first failure."
    }
  ],
  "type": [
    {
      "of": "a node",
      "value": "string",
      "default": "",
      "meaning": "Handler type, before the shape's."
    }
  ],
  "verdict": [
    {
      "of": "a node",
      "value": "json",
      "default": "",
      "meaning": "Ask for a JSON verdict as the last block."
    }
  ],
  "weight": [
    {
      "of": "an edge",
      "value": "integer",
      "default": "0",
      "meaning": "Priority among equally eligible edges; higher wins."
    }
  ]
};

export const SHAPES = {
  "Mdiamond": "start: where a run begins",
  "Msquare": "exit: where it ends, and the goal gates are checked",
  "box": "codergen: a prompt to a model",
  "hexagon": "wait.human: a question to a person",
  "diamond": "conditional: a branch point: runs nothing; its edges test the outcome of the previous stage",
  "component": "parallel: several branches at once: each edge begins one",
  "tripleoctagon": "parallel.fan_in: where branches meet, and the best of them is chosen",
  "parallelogram": "tool: a command",
  "house": "stack.manager_loop: watches over a run of another pipeline, and steers it"
};

export const KEYWORDS = [
  "digraph",
  "edge",
  "graph",
  "node",
  "strict",
  "subgraph"
];

export const RULES = {
  "start_node": "The pipeline has exactly one start node.",
  "terminal_node": "The pipeline has exactly one exit node.",
  "start_no_incoming": "No edge enters the start node.",
  "exit_no_outgoing": "No edge leaves the exit node.",
  "edge_target_exists": "Both ends of every edge are nodes of the pipeline.",
  "missing_arrow": "Two nodes side by side on a line have an arrow between them.",
  "reachability": "Every node can be reached from the start.",
  "implicit_node": "Every node is declared, not only named in edges.",
  "dead_end": "Every node but the exit has an edge that leaves it.",
  "duplicate_edge": "No edge is written twice.",
  "shape_known": "A node's shape stands for a handler type, or the node says its type itself.",
  "shape_alias": "Start and exit have the shapes of the specification.",
  "type_known": "A node's type names a handler.",
  "handler_missing": "Every node has a handler here.",
  "function_known": "A function stage names a function that was registered, and a node that names one calls it.",
  "prompt_on_llm_nodes": "A model stage has a prompt.",
  "tool_without_command": "A tool stage has a command.",
  "pipe_hides_failure": "A goal gate's command fails when its check fails.",
  "bad_value": "An attribute value has the wrong type, is not one of the choices, or is too small.",
  "whole_number": "A whole number is written without a decimal point.",
  "bad_duration": "A duration is a number with a unit: 250ms, 900s, 15m, 1.5h, 1d.",
  "fidelity_valid": "A fidelity is one of the six modes.",
  "attribute_typo": "An attribute's name is not almost the name of a known one.",
  "foreign_attribute": "An attribute has the name that this runner reads, not that of another one.",
  "retry_target_exists": "A retry target names a node.",
  "goal_gate_has_retry": "A goal gate says where to go when it is not satisfied.",
  "gate_without_effect": "A goal gate is a stage that can fail.",
  "condition_syntax": "A condition is clauses key=value or key!=value, joined by &&.",
  "outcome_alias": "A condition spells a status as the specification does.",
  "outcome_unknown": "A condition compares outcome with a status.",
  "status_as_key": "A condition names what it compares.",
  "literal_unquoted": "A literal of several words is quoted.",
  "literal_spelling": "A literal spells a truth value or a number as JSON does.",
  "all_conditions_may_fail": "Where every edge has a condition, one of them always holds.",
  "ambiguous_unconditional": "Where several edges without a condition compete, something tells them apart.",
  "gate_mixes_conditions": "The edges of a human gate have no conditions.",
  "accelerator_clash": "The choices of a human gate have different keys and texts.",
  "unbounded_cycle": "A cycle has a way out that a run can take.",
  "no_join": "The branches of a fan-out meet again.",
  "fan_out_branches": "A fan-out has branches: edges without a condition.",
  "fan_out_policy": "The join policy of a fan-out can be met by its branches.",
  "branch_start": "Each branch of a fan-out begins at a node of its own, before the join.",
  "branch_condition": "An edge of a fan-out that has a condition begins no branch.",
  "fan_in_without_fan_out": "A fan-in comes after a fan-out.",
  "branch_leaves_fan_out": "No branch of a fan-out leads back to the fan-out or to a node before it.",
  "fan_in_off_join": "The branches of a fan-out come to no fan-in but the one where all of them meet.",
  "gate_may_be_skipped": "A human gate stands where the run cannot go on without it.",
  "restart_in_branch": "No branch of a fan-out restarts the run.",
  "stylesheet_syntax": "The model stylesheet can be read.",
  "unknown_property": "A stylesheet sets model, provider, reasoning_effort, temperature, max_tokens and base_url.",
  "style_value": "A stylesheet's reasoning_effort is low, medium or high, its numbers are numbers.",
  "unused_selector": "Every id and shape that the stylesheet selects belongs to a node.",
  "unused_class": "Stylesheet and nodes use the same classes.",
  "attach_unused": "attach stands on a node that asks a model, and names what can be attached.",
  "bound_unused": "max_budget_usd and max_tokens_total of a node bound what it spends.",
  "tools_known": "allowed_tools names tools that there are.",
  "servers_declared": "mcp.NAME.… of the graph says of an MCP server how it is started or where it is, and nothing that nobody reads.",
  "extra_valid": "llm.extra.* passes on what a provider is known to take, with the type that it has to have.",
  "cache_files_inside": "cache.files names files of the working directory: paths and patterns, with commas between.",
  "carry_known": "carry names values that something in the graph can set.",
  "fallback_valid": "llm_fallback is a list of models: model or provider:model, with commas between.",
  "base_url_valid": "llm.base_url is the address of a server: https://…, or http://… on this machine.",
  "endpoint_valid": "An endpoint has an address, and what is said of it is right: endpoint.local.url, .key_env, .api.",
  "fallback_on_known": "llm_fallback_on says when else the models of llm_fallback are asked: overlong, refusal.",
  "provider_known": "llm_provider is a provider that is known.",
  "model_provider": "A model's name tells its provider, or llm_provider does.",
  "schema_valid": "A response_schema is a JSON Schema, or the name of a registered pydantic model.",
  "hooks_called": "Hooks stand where a model may call tools: tool_hooks.* beside allowed_tools of a model stage.",
  "form_valid": "A human.form stands at a human gate and names a registered pydantic model of flat fields.",
  "review_exists": "What a human.review names are files of stages that the graph has: plan/response.md.",
  "gate_can_work": "A human gate has a choice that can be taken, and what its attributes name is among the choices.",
  "child_pipeline": "A stage that runs another pipeline names one that can run.",
  "manager_actions": "A manager's actions are observe, steer and wait, and it can do what it is told to.",
  "manager_conditions": "A manager's conditions parse.",
  "pipeline_mappings": "What goes into a sub-pipeline and what comes back is a list of assignments.",
  "inputs_valid": "inputs is a list of names, some with defaults; inputs_schema names a registered model.",
  "variable_unknown": "A variable in a prompt names an input, the goal, or what a stage leaves.",
  "condition_key": "A condition asks for a key that something sets.",
  "text_file": "A text that begins with @ names a file below the folder of the pipeline's file.",
  "variable_form": "A variable with a dot in its name has braces, and no variable has two of them.",
  "command_variable": "A command has no variables of the pipeline: nothing of a run is ever put into it (ruling 25).",
  "for_each": "for_each names a list, on a stage that can be run once for each item of it.",
  "item_variable": "${item} and ${item_index} stand in texts of the node that is run for each item.",
  "secret_in_source": "No key, token or password stands in a pipeline.",
  "secret_in_id": "No node is called like a key."
};

export const CONTEXT_KEYS = {
  "goal": "the goal of the graph",
  "current_node": "the node that runs",
  "last_response": "the beginning of the last response",
  "last_stage": "the node of the last stage",
  "outcome": "the status of the last stage",
  "preferred_label": "the label of the edge that the last stage prefers",
  "human.gate.form": "what a person filled in at the last gate",
  "human.gate.label": "the label of the answer at the last gate",
  "human.gate.selected": "the key of the answer at the last gate",
  "human.gate.text": "the text that a person entered at the last gate",
  "parallel.results": "the results of the last fan-out, as JSON",
  "tool.exit_code": "the exit code of the last command",
  "tool.last_line": "the last line that the last command printed",
  "tool.output": "what the last command printed",
  "tool.stderr": "what the last command printed as errors"
};

export const CONDITIONS = [
  "condition",
  "manager.escalate",
  "manager.guard",
  "manager.stop_condition"
];

export const WITH_VARIABLES = [
  "attach",
  "human.prompt",
  "label",
  "llm.system_prompt",
  "manager.instructions",
  "prompt"
];
