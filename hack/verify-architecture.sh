#!/usr/bin/env bash
# Every path and function that docs/development/architecture.md names exists, every path that AGENTS.md names, and every
# file that the package comment of pkg/apiserver names.
# A function stands behind its file: `pkg/a/b.go` `First` `Second`.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/development/architecture.md
summary=AGENTS.md
failures=0

complain() {
  echo "$1: $2" >&2
  failures=$((failures + 1))
}

# alternatives PATH: one line for each way to read a{b,c}, with <kind> as a wildcard.
alternatives() {
  local path=$1
  if [[ $path =~ ^([^{]*)\{([^}]*)\}(.*)$ ]]; then
    local before=${BASH_REMATCH[1]} choices=${BASH_REMATCH[2]} after=${BASH_REMATCH[3]} choice
    for choice in ${choices//,/ }; do
      alternatives "$before$choice$after"
    done
  else
    sed -E 's/<[a-z]+>/*/g' <<<"${path%/}"
  fi
}

# The page names paths from the root of the repository, also in its diagrams.
while read -r path; do
  compgen -G "$path" >/dev/null || complain "$page" "there is no $path"
done < <(grep -oE '(^|[^A-Za-z0-9_./-])(artifacts|cmd|docs|hack|pkg|test)/[A-Za-z0-9_.*/-]+' "$page" |
  sed -E 's/^[^a-z]//; s/[./]+$//; s|/KIND$||' | sort -u)

while read -r file functions; do
  for function in $functions; do
    grep --quiet -E "^func (\([^)]*\) )?$function[[(]|^type $function " "$file" 2>/dev/null || complain "$page" "$file has no $function"
  done
done < <(tr '\n' ' ' <"$page" | grep -oE '`[A-Za-z0-9_./-]+\.go`( +`[A-Za-z]+`)+' | tr -d '`' | sort -u)

# The package comment of the API server names its files, without their ending, in parentheses.
server=pkg/apiserver
while read -r file; do
  [[ -e $server/$file.go ]] || complain "$server/doc.go" "there is no $file.go"
done < <(sed -n 's,^//,,p' "$server/doc.go" | tr '\n' ' ' | grep -oE '\([a-z, ]+\)' | tr -d '(),' | tr ' ' '\n' | grep .)

# The summary may leave the beginning of a path out, which then has to be the end of one.
while read -r named; do
  while read -r path; do
    [[ -n $(find . -path "*/$path" -not -path './.git/*' -print -quit) ]] || complain "$summary" "there is no $path"
  done < <(alternatives "$named")
done < <(grep -oE '`[^` ]+/[^` ]*`' "$summary" | tr -d '`' | grep -vE '^[a-z0-9-]+\.[a-z0-9.-]+/' | sort -u)

((failures == 0))
