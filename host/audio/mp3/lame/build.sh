#!/usr/bin/env bash
# Builds lame.wasm from lame-3.100.tar.xz: LAME's library as it is, with the functions
# that Go calls exported. On Debian 12 the result is the same to the byte; it needs
#
#	apt-get install clang-19 lld-19 libclang-rt-19-dev-wasm32 wasi-libc wabt xz-utils
#
# Usage: build.sh [FILE], by default lame.wasm beside the script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "${1:-$here/lame.wasm}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xJf "$here/lame-3.100.tar.xz" -C "$scratch"
cd "$scratch"

exports=(
	malloc lame_init lame_set_num_channels lame_set_in_samplerate lame_set_out_samplerate
	lame_set_VBR lame_set_VBR_quality lame_set_bWriteVbrTag lame_init_params
	lame_encode_buffer_ieee_float lame_encode_flush lame_get_lametag_frame
)
clang-19 --target=wasm32-wasi -mexec-model=reactor -O2 -w \
	-DHAVE_CONFIG_H -DNOANALYSIS -DNDEBUG \
	-I"$here" -Ilame-3.100/include -Ilame-3.100/libmp3lame \
	lame-3.100/libmp3lame/*.c "$here/nofiles.c" \
	-Wl,--gc-sections -Wl,--strip-all "${exports[@]/#/-Wl,--export=}" -o whole.wasm

# wazero up to 1.12 compiles remainders wrongly on arm64 when registers are scarce (its
# change 2508): none are left in.
wasm2wat whole.wasm | sed -E 's/i32\.rem_([su])/call $rem_\1/' >rem.wat
for sign in s u; do
	cat <<-WAT
		(func \$rem_$sign (param i32 i32) (result i32)
		  local.get 0
		  local.get 0
		  local.get 1
		  i32.div_$sign
		  local.get 1
		  i32.mul
		  i32.sub)
	WAT
done >functions.wat
sed -i -e '$ s/)$//' rem.wat
{
	cat rem.wat functions.wat
	echo ')'
} >all.wat
if grep -E 'rem_[su]$|\(import' all.wat | grep -v call; then
	echo "build.sh: the module has remainders or imports left" >&2
	exit 1
fi
wat2wasm all.wat -o "$out"
sha256sum "$out"
