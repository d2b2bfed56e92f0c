#!/usr/bin/env bash
# toolkit.sh DIR [--headers]
#
# Makes the root of a CUDA 13.0 toolkit in DIR from the wheels that toolkit.txt pins: for
# x86-64 and, to build for Jetson Thor, aarch64. With --headers only what the emulation
# needs. It needs python3 with pip, which finds the wheels as it is configured to, and
# neither a GPU nor a driver. Where DIR is up to date already it does nothing.
set -euo pipefail

usage='usage: toolkit.sh DIR [--headers]'
dir='' headers=
for argument in "$@"; do
	case $argument in
	--headers) headers=-headers ;;
	-*) echo "$usage" >&2; exit 2 ;;
	*) dir=$argument ;;
	esac
done
[ -n "$dir" ] || { echo "$usage" >&2; exit 2; }
pins=$(cd "$(dirname "$0")" && pwd)/toolkit.txt
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

made=$(cat "$pins" "$0" | sha256sum | cut -c1-16)
was=$(cat "$dir/made" 2>/dev/null || true)
case $was in "$made" | "$made$headers") echo "toolkit.sh: $dir is up to date"; exit ;; esac
rm -rf "$dir"/{bin,include,lib64,nvvm,targets,made}

scratch=$(mktemp -d "$dir/scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# wheels FOR MACHINE installs the pins that FOR needs.
wheels() {
	grep -E "#.* $1( |\$)" "$pins" | sed 's/ *#.*//' >"$scratch/pins"
	local tags=() tag
	for tag in manylinux2010 manylinux_2_12 manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do
		tags+=(--platform "${tag}_$2")
	done
	PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-deps \
		--no-compile --no-cache-dir --only-binary=:all: --python-version 3.11 --implementation py --abi none \
		"${tags[@]}" --target "$scratch/$1" -r "$scratch/pins"
}

# NVIDIA's own layout: where there is a folder targets, nvcc looks nowhere else.
here=$dir/targets/x86_64-linux
mkdir -p "$here"
if [ -n "$headers" ]; then
	wheels headers x86_64
	mv "$scratch/headers/nvidia/cu13/include" "$here/"
else
	[ "$(uname -m)" = x86_64 ] || { echo 'toolkit.sh: the compiler is pinned for x86-64 only; install CUDA 13 here' >&2; exit 1; }
	wheels host x86_64
	mv "$scratch"/host/nvidia/cu13/{bin,nvvm} "$dir/"
	mv "$scratch"/host/nvidia/cu13/{include,lib} "$here/"
	rm -f "$here"/lib/libnvvm.so.* # 63 MB; nvcc runs cicc
	ln -s libcudart.so.13 "$here/lib/libcudart.so"
	ln -s targets/x86_64-linux/lib "$dir/lib64"
	wheels aarch64 aarch64
	mkdir "$dir/targets/sbsa-linux"
	mv "$scratch/aarch64/nvidia/cu13/lib" "$dir/targets/sbsa-linux/"
	ln -s libcudart.so.13 "$dir/targets/sbsa-linux/lib/libcudart.so"
	ln -s ../x86_64-linux/include "$dir/targets/sbsa-linux/include"
	ln -s sbsa-linux "$dir/targets/aarch64-linux" # CMake's name for it
	"$dir/bin/nvcc" --version | sed -n 's/^Cuda compilation tools, //p'
fi
ln -s targets/x86_64-linux/include "$dir/include"
echo "$made$headers" >"$dir/made"
