#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kube-controller-manager for the tests.
#
#   build.sh [OUT_DIR]     default: ${XDG_CACHE_HOME:-$HOME/.cache}/wharfinger/kube-assets
#
# Progress goes to stderr; the last and only line on stdout is OUT_DIR (absolute).
# A binary that is in OUT_DIR for these sources is left alone; if all three are, Go is not needed.
set -euo pipefail

say() { printf 'kube-assets: [%4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { printf 'kube-assets: error: %s\n' "$*" >&2; exit 1; }
instead='or set KUBEBUILDER_ASSETS to a directory that has etcd, kube-apiserver and kube-controller-manager'

[ $# -le 1 ] || die "usage: build.sh [OUT_DIR]"
src=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
out=${1:-}
if [ -z "$out" ]; then
  [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || die "neither XDG_CACHE_HOME nor HOME is set: name the directory: build.sh OUT_DIR"
  out=${XDG_CACHE_HOME:-$HOME/.cache}/wharfinger/kube-assets
fi
for tool in flock sha256sum; do
  command -v "$tool" >/dev/null || die "$tool not found: install it (util-linux, coreutils), $instead"
done
mkdir -p "$out" 2>/dev/null || die "cannot make the directory $out: name another one: build.sh OUT_DIR"
out=$(cd "$out" && pwd -P)
[ -w "$out" ] || die "cannot write to $out: name another directory: build.sh OUT_DIR"

packages=(
  go.etcd.io/etcd/server/v3
  k8s.io/kubernetes/cmd/kube-apiserver
  k8s.io/kubernetes/cmd/kube-controller-manager
)
binary() { case $1 in go.etcd.io/etcd/server/*) echo etcd ;; *) echo "${1##*/}" ;; esac; }

# What the binaries are made of. Each has its own stamp, so that an interrupted build goes on.
hash=$({ cat "$src/go.mod" "$src/go.sum" "$src/build.sh"; uname -sm; } | sha256sum | cut -d' ' -f1)
fresh() { [ -x "$out/$1" ] && [ "$(cat "$out/.$1.stamp" 2>/dev/null)" = "$hash" ]; }
missing() {
  todo=()
  for package in "${packages[@]}"; do
    fresh "$(binary "$package")" || todo+=("$package")
  done
  [ ${#todo[@]} -gt 0 ]
}
missing || { printf '%s\n' "$out"; exit 0; }

exec 9>"$out/.lock"
if ! flock -n 9; then
  say "another build into $out is running, waiting for it"
  flock 9
fi
missing || { say "all there now"; printf '%s\n' "$out"; exit 0; }

# Go: the machine's own, for the machine's own kind.
need=$(sed -n 's/^go //p' "$src/go.mod")
command -v go >/dev/null || die "Go not found: install Go $need or newer and put it into PATH, $instead"
unset GOOS GOARCH
export GOWORK=off CGO_ENABLED=0
kube=$(sed -nE 's/^[[:space:]]*k8s\.io\/kubernetes (v[^ ]+).*/\1/p' "$src/go.mod")
IFS=. read -r major minor _ <<<"${kube#v}"
if [ -z "$major" ] || [ -z "$minor" ]; then die "no version of k8s.io/kubernetes in $src/go.mod"; fi
ldflags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X $p.gitVersion=$kube -X $p.gitMajor=$major -X $p.gitMinor=$minor -X $p.gitTreeState=clean -X $p.gitCommit="
done
# -mod=readonly: go.mod and go.sum are complete. The tags are those of Kubernetes' own release builds
# (grpcnotrace lets the linker drop much unused code).
flags=(-mod=readonly -buildvcs=false -trimpath "-tags=notest,grpcnotrace")

rm -rf "$out"/.build.* # of a build that was killed; the lock is ours
tmp=$(mktemp -d "$out/.build.XXXXXX")
pid=
cleanup() {
  trap - EXIT INT TERM HUP
  if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'say "interrupted"; exit 130' INT
trap 'say "terminated"; exit 143' TERM HUP

# run WHAT COMMAND...: runs it with its errors in $tmp/log; says every 30 s that it still runs.
run() {
  local what=$1 since=$SECONDS rc=0
  shift
  (cd "$src" && exec "$@") >/dev/null 2>"$tmp/log" 9>&- &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5
    if ((SECONDS - since >= 30)); then since=$SECONDS; say "$what: still at it"; fi
  done
  wait "$pid" || rc=$?
  pid=
  return "$rc"
}

# failed WHAT: the output of Go, then one line that says what to do.
failed() {
  local why
  grep -v '^go: downloading ' "$tmp/log" >"$tmp/said" || true
  tail -n 20 "$tmp/said" | sed 's/^/  | /' >&2
  why=$(grep -m1 -iE 'requires go|toolchain|missing go\.sum|updates to go\.|no space left|checksum mismatch' "$tmp/said" ||
    grep -m1 -iE '403|404|410|forbidden|not found|dial tcp|lookup|timeout|refused|proxy|reading http' "$tmp/said" ||
    tail -n 1 "$tmp/said")
  case $why in
    *'requires go'* | *toolchain*) die "this Go is too old ($(go env GOVERSION 2>/dev/null)): install Go $need or newer, $instead" ;;
    *go.sum* | *'updates to go.'*) die "go.mod and go.sum do not fit: run 'go mod tidy' in $src and commit both" ;;
    *'no space left'*) die "the disk is full: make 4 GB free for 'go env GOCACHE' and 1 GB for $out, then start again" ;;
    *'checksum mismatch'*) die "the module proxy served something else than go.sum says ($why): see 'go env GOPROXY'" ;;
  esac
  if [ "$1" = modules ]; then
    die "cannot get the Go modules ($why): see that 'go env GOPROXY' names a proxy that can be reached and serves them, $instead"
  fi
  die "cannot build $1 ($why)"
}

say "$(cd / && go env GOVERSION): ${#todo[@]} of ${#packages[@]} to build into $out; from an empty build cache this takes about 5 minutes on 2 cores"
say "modules: getting them"
run modules go list "${flags[@]}" -deps "${todo[@]}" || failed modules
for package in "${todo[@]}"; do
  name=$(binary "$package")
  start=$SECONDS
  say "$name: building"
  run "$name" go build "${flags[@]}" -ldflags "$ldflags" -o "$tmp/$name" "$package" || failed "$name"
  rm -f "$out/.$name.stamp"
  mv -f "$tmp/$name" "$out/$name"
  printf '%s\n' "$hash" >"$tmp/stamp"
  mv -f "$tmp/stamp" "$out/.$name.stamp"
  say "$name: built in $((SECONDS - start)) s ($(du -m "$out/$name" | cut -f1) MB)"
done
say "done"
printf '%s\n' "$out"
