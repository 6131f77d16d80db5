"""Why a run went the way it went."""
