//! The kernel that is packed in a bzImage, as an ELF image. QEMU enters one by itself where it has an entry for that (kernel
//! `arch/x86/platform/pvh/head.S`). An emulated CPU takes two seconds to unpack it, which the host does in a fraction.

use goblin::elf::Elf;

use super::packed::Packing;

/// More than any kernel has, bytes.
const LARGEST: u64 = 512 << 20;
/// The entry for hypervisors, as notes have it (kernel `include/xen/interface/elfnote.h`).
const ENTRY: (&str, u32) = ("Xen", 18);

/// The kernel in a bzImage; `None` where the image has none, or none that QEMU can enter.
pub(super) fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
    let packed = payload(image)?;
    let kernel = Packing::of(packed)?.unpack(packed, LARGEST).ok()?;
    has_entry(&kernel).then_some(kernel)
}

/// What is packed (kernel `Documentation/arch/x86/boot.rst`, protocol 2.08 and later).
fn payload(image: &[u8]) -> Option<&[u8]> {
    const SECTOR: usize = 512;
    const SETUP_SECTORS: usize = 0x1f1;
    const MAGIC: usize = 0x202;
    const OFFSET: usize = 0x248;
    const LENGTH: usize = 0x24c;
    if image.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return None;
    }
    let number = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    // The boot sector itself is not counted, and none counted are four.
    let setup = match usize::from(*image.get(SETUP_SECTORS)?) {
        0 => 4,
        sectors => sectors,
    };
    let from = (setup + 1) * SECTOR + number(OFFSET)?;
    image.get(from..from + number(LENGTH)?)
}

fn has_entry(kernel: &[u8]) -> bool {
    let Ok(elf) = Elf::parse(kernel) else {
        return false;
    };
    let mut notes = elf.iter_note_headers(kernel).into_iter().flatten();
    notes.any(|note| note.is_ok_and(|note| (note.name, note.n_type) == ENTRY))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::Compression;
    use flate2::bufread::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// With this packed, after as many sectors of setup as it says.
    fn bzimage(setup: u8, packed: &[u8]) -> Vec<u8> {
        let sectors = if setup == 0 { 4 } else { usize::from(setup) };
        let mut image = vec![0; (sectors + 1) * 512 + 16];
        image[0x1f1] = setup;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        let length = u32::try_from(packed.len()).unwrap();
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend(packed);
        image.extend(b"what is not packed");
        image
    }

    #[test]
    fn what_is_packed_is_found_as_the_header_says() {
        for setup in [0, 1, 39] {
            assert_eq!(payload(&bzimage(setup, b"packed")), Some(&b"packed"[..]));
        }
        let mut cut = bzimage(1, b"packed");
        cut.truncate(cut.len() - 20);
        let mut endless = bzimage(1, b"packed");
        endless[0x24c..0x250].fill(0xff);
        for none in [&b""[..], b"HdrS", &cut, &endless, &[0; 0x400]] {
            assert_eq!(payload(none), None);
        }
    }

    /// An ELF image that has a note and nothing else.
    fn with_note(name: &str, kind: u32) -> Vec<u8> {
        const HEADER: u16 = 64;
        const PROGRAM_HEADER: u16 = 56;
        const NOTES: u32 = 4;
        let at = u64::from(HEADER + PROGRAM_HEADER);
        let mut note = Vec::new();
        for number in [u32::try_from(name.len()).unwrap() + 1, 4, kind] {
            note.extend(number.to_le_bytes());
        }
        note.extend(name.as_bytes());
        note.resize(note.len().next_multiple_of(4), 0);
        note.extend([0, 0, 0, 1]);
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        // An executable of x86-64.
        for number in [2_u16, 62] {
            elf.extend(number.to_le_bytes());
        }
        elf.extend(1_u32.to_le_bytes());
        for number in [0, u64::from(HEADER), 0] {
            elf.extend(number.to_le_bytes());
        }
        elf.extend(0_u32.to_le_bytes());
        for number in [HEADER, PROGRAM_HEADER, 1, 64, 0, 0] {
            elf.extend(number.to_le_bytes());
        }
        elf.extend(NOTES.to_le_bytes());
        elf.extend(4_u32.to_le_bytes());
        let length = note.len() as u64;
        for number in [at, 0, 0, length, length, 4] {
            elf.extend(number.to_le_bytes());
        }
        elf.extend(note);
        elf
    }

    #[test]
    fn a_kernel_that_qemu_can_enter_is_unpacked() {
        let pack = |kernel: &[u8]| compress_to_vec(kernel, CompressionLevel::Fastest);
        let kernel = with_note("Xen", 18);
        let mut by_gzip = Vec::new();
        let mut packing = GzEncoder::new(&kernel[..], Compression::fast());
        packing.read_to_end(&mut by_gzip).unwrap();
        for packed in [pack(&kernel), by_gzip] {
            assert_eq!(unpacked(&bzimage(3, &packed)), Some(kernel.clone()));
        }
        for (name, kind) in [("Xen", 6), ("GNU", 18)] {
            let image = bzimage(3, &pack(&with_note(name, kind)));
            assert_eq!(unpacked(&image), None, "{name} {kind}");
        }
    }

    #[test]
    fn what_qemu_cannot_enter_is_left_packed() {
        let plain = bzimage(1, b"\x7fELF");
        let damaged = bzimage(1, b"\xfd7zXZ\0\0\0");
        let own = std::fs::read("/proc/self/exe").unwrap();
        for none in [&plain, &damaged] {
            assert_eq!(unpacked(none), None);
        }
        assert!(!has_entry(&own), "a program is no kernel");
    }
}
