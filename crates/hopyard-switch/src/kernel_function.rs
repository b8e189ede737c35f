//! Calls from the programs to functions of the kernel, which the loader of the programs does not resolve.

use std::sync::LazyLock;

use aya::Btf;
use aya_obj::btf::BtfKind;

use crate::error::{Error, Result};

/// Functions of the kernel (Linux 6.2), with the numbers that stand for them in the object (`bpf/kernel.h`). They give a
/// program the kernel's own view of its packet, and of what is at an address.
const FUNCTIONS: [(&str, i32); 2] = [
    ("bpf_cast_to_kern_ctx", 0x6b65_726e),
    ("bpf_rdonly_cast", 0x6b65_726f),
];
/// `BPF_JMP | BPF_CALL`; the byte behind it says whose function: 0 a helper's number, `BPF_PSEUDO_KFUNC_CALL` in the
/// upper half the type of a function in the kernel's BTF (`linux/bpf.h`).
const CALL: u8 = 0x85;
const KERNEL_FUNCTION: u8 = 2 << 4;

/// The object with its calls of [`FUNCTIONS`] as the running kernel wants them.
pub(crate) fn linked(object: &[u8]) -> Result<Vec<u8>> {
    let mut linked = object.to_vec();
    for (function, placeholder) in FUNCTIONS {
        let number = kernel_types(function)?
            .id_by_type_name_kind(function, BtfKind::Func)
            .map_err(|error| unknown(function, &error.to_string()))?;
        set_calls(&mut linked, placeholder, number);
    }
    Ok(linked)
}

/// The types and functions of the running kernel.
fn kernel_types(function: &str) -> Result<&'static Btf> {
    static TYPES: LazyLock<std::result::Result<Btf, String>> =
        LazyLock::new(|| Btf::from_sys_fs().map_err(|error| error.to_string()));
    TYPES.as_ref().map_err(|error| unknown(function, error))
}

fn unknown(function: &str, error: &str) -> Error {
    let why = format!(
        "this kernel does not tell of {function} ({error}); it takes Linux 6.2 or newer with CONFIG_DEBUG_INFO_BTF"
    );
    Error::invalid("load the switch's programs", why)
}

fn set_calls(object: &mut [u8], placeholder: i32, number: u32) {
    let mut call = [CALL, 0, 0, 0, 0, 0, 0, 0];
    call[4..].copy_from_slice(&placeholder.to_le_bytes());
    // Instructions are 8 octets long and so aligned in the object.
    for instruction in object.chunks_exact_mut(8).filter(|found| **found == call) {
        instruction[1] = KERNEL_FUNCTION;
        instruction[4..].copy_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_placeholder_become_calls_of_the_kernel_alone() {
        let helper = [CALL, 0, 0, 0, 18, 0, 0, 0];
        let call = [CALL, 0, 0, 0, 0x6e, 0x72, 0x65, 0x6b];
        let data = [0, 0, 0, 0, 0x6e, 0x72, 0x65, 0x6b];
        let mut linked = [helper, call, data].concat();
        set_calls(&mut linked, 0x6b65_726e, 0x0102_0304);
        let expected = [CALL, KERNEL_FUNCTION, 0, 0, 4, 3, 2, 1];
        assert_eq!(linked, [helper, expected, data].concat());
    }
}
