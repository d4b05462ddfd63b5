# Completion of dais for bash; tests/scenario/test_packaging.py compares it with what the program says.
_dais() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} own="" at=1
	local shared="--state --config --log-level --help --usage --version"

	case $before in
	--state | --config-dir | --cwd) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
	--config | --tls-cert | --tls-key) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "trace debug info warn error off" -- "$word"); return ;;
	--auth) mapfile -t COMPREPLY < <(compgen -W "token none" -- "$word"); return ;;
	--role) mapfile -t COMPREPLY < <(compgen -W "queue work review blocked terminal" -- "$word"); return ;;
	esac
	# Shared options may stand before the command; bash takes --state=DIR for three words.
	while [[ ${COMP_WORDS[at]} == --* ]] && [ "$at" -lt "$COMP_CWORD" ]; do
		[[ ${COMP_WORDS[at + 1]} == = ]] && ((at++))
		((at += 2))
	done
	local command=${COMP_WORDS[at]}
	[ "$command" = help ] && [ "$COMP_CWORD" -eq $((at + 1)) ] && at=$COMP_CWORD
	if [ "$COMP_CWORD" -eq "$at" ] && [[ $word == --* && $at -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$shared" -- "$word")
		return
	fi
	if [ "$COMP_CWORD" -eq "$at" ]; then
		mapfile -t COMPREPLY < <(compgen -W "serve mcp-stdio call status items run threads providers events project token init open demo backup export import doctor --help --version" -- "$word")
		return
	fi
	case $command in
	serve) own="--auth --config-dir --listen --print-config --store --tls-cert --tls-key" ;;
	mcp-stdio) own="--no-spawn" ;;
	call) own="--raw" ;;
	status) own="--json" ;;
	items) own="--json --limit --open --role --root --table --watch" ;;
	run) own="--cwd --json --mode --model --plan --provider --title" ;;
	threads) own="--accept --accept-session --archived --cancel --decline --json --limit --mode --project --status --watch" ;;
	providers) own="--json" ;;
	events) own="--count --json --since --type" ;;
	project) own="--confirm --json --name" ;;
	token) own="--all --cap --capabilities --description --id --json --root --ttl" ;;
	open) own="--print" ;;
	backup) own="--force" ;;
	export) own="--force" ;;
	doctor) own="--json --rebuild" ;;
	esac
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$own $shared" -- "$word")
		return
	fi
	case $command in
	token) mapfile -t COMPREPLY < <(compgen -W "create list revoke" -- "$word") ;;
	threads) mapfile -t COMPREPLY < <(compgen -W "list show follow send steer interrupt answer archive delete" -- "$word") ;;
	project) mapfile -t COMPREPLY < <(compgen -W "add list remove" -- "$word"; compgen -d -- "$word") ;;
	call) mapfile -t COMPREPLY < <(compgen -W "items_read items_write notes_read notes_write deps_read deps_write advance docs_read docs_write config report orchestrator_capabilities delegate_task task_status task_cancel create_threads t3_thread_list t3_thread_read t3_thread_update t3_thread_send t3_thread_wait t3_thread_interrupt t3_thread_launch" -- "$word") ;;
	backup | export | import) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	init) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	esac
}
complete -F _dais dais
