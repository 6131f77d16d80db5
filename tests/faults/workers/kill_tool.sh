# The tool of the kill campaign: leaves its mark, starts something that stays behind, speaks, ends.
printf '{"node": "%s", "key": "%s", "where": "%s", "command": true}\n' \
    "$ATTRACTOR_NODE_ID" "$ATTRACTOR_IDEMPOTENCY_KEY" "$ATTRACTOR_LOGS_ROOT" >>"$CAMPAIGN_EFFECTS"
tail -f /dev/null >/dev/null 2>&1 &
echo "built"
echo "with a warning" >&2
