//! Calls from the programs to a function of the kernel, which the loader of the programs does not resolve.

use std::sync::LazyLock;

use aya::Btf;
use aya_obj::btf::BtfKind;

use crate::error::{Error, Result};

/// Gives a program the kernel's own view of its packet (Linux 6.2).
const FUNCTION: &str = "bpf_cast_to_kern_ctx";
/// The number that stands for it in the object (`bpf/kernel.h`).
const PLACEHOLDER: i32 = 0x6b65_726e;
/// `BPF_JMP | BPF_CALL`; the byte behind it says whose function: 0 a helper's number, `BPF_PSEUDO_KFUNC_CALL` in the
/// upper half the type of a function in the kernel's BTF (`linux/bpf.h`).
const CALL: u8 = 0x85;
const KERNEL_FUNCTION: u8 = 2 << 4;

/// The object with its calls of [`FUNCTION`] as the running kernel wants them.
pub(crate) fn linked(object: &[u8]) -> Result<Vec<u8>> {
    let number = kernel_types()?
        .id_by_type_name_kind(FUNCTION, BtfKind::Func)
        .map_err(|error| unknown(&error.to_string()))?;
    Ok(with_calls(object, number))
}

/// The types and functions of the running kernel.
fn kernel_types() -> Result<&'static Btf> {
    static TYPES: LazyLock<std::result::Result<Btf, String>> =
        LazyLock::new(|| Btf::from_sys_fs().map_err(|error| error.to_string()));
    TYPES.as_ref().map_err(|error| unknown(error))
}

fn unknown(error: &str) -> Error {
    let why = format!(
        "this kernel does not tell of {FUNCTION} ({error}); it takes Linux 6.2 or newer with CONFIG_DEBUG_INFO_BTF"
    );
    Error::refused("load the switch's programs", why)
}

fn with_calls(object: &[u8], number: u32) -> Vec<u8> {
    let mut call = [CALL, 0, 0, 0, 0, 0, 0, 0];
    call[4..].copy_from_slice(&PLACEHOLDER.to_le_bytes());
    let mut linked = object.to_vec();
    // Instructions are 8 octets long and so aligned in the object.
    for instruction in linked.chunks_exact_mut(8).filter(|found| **found == call) {
        instruction[1] = KERNEL_FUNCTION;
        instruction[4..].copy_from_slice(&number.to_le_bytes());
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_placeholder_become_calls_of_the_kernel_alone() {
        let helper = [CALL, 0, 0, 0, 18, 0, 0, 0];
        let call = [CALL, 0, 0, 0, 0x6e, 0x72, 0x65, 0x6b];
        let data = [0, 0, 0, 0, 0x6e, 0x72, 0x65, 0x6b];
        let linked = with_calls(&[helper, call, data].concat(), 0x0102_0304);
        let expected = [CALL, KERNEL_FUNCTION, 0, 0, 4, 3, 2, 1];
        assert_eq!(linked, [helper, expected, data].concat());
    }
}
