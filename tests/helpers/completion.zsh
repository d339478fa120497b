# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Presses a key in an interactive zsh: zsh -f tests/helpers/completion.zsh BIN FUNCTIONS LINE: with the tool in BIN and its
# completion in FUNCTIONS, the line is typed, completed and shown in <<...>>, below what zsh lists.
zmodload zsh/zpty
export TERM=xterm

zpty shell zsh -f -i
zpty -w shell "PS1= PROMPT_EOL_MARK= PATH=$1:\$PATH; fpath=($2 \$fpath); autoload -Uz compinit; compinit -D -u
complete-and-show() { zle complete-word; zle -R; print -r -- \"<<\$BUFFER>>\" }
zle -N complete-and-show; bindkey '^T' complete-and-show; print re''ady"
zpty -r shell seen '*ready*'
zpty -w -n shell "$3"$'\x14'
zpty -r shell seen '*<<*>>*'
print -r -- "$seen"
