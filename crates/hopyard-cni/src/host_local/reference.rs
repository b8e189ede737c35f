//! Is a file the reference program? A program of Go names the package that it was built from (`debug/buildinfo`, Go 1.18).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use goblin::container::Ctx;
use goblin::elf::Elf;
use goblin::elf::header::header64::SIZEOF_EHDR;
use goblin::elf::section_header::SectionHeader;

/// The line that names the package.
const LINE: &[u8] = b"path\tgithub.com/containernetworking/plugins/plugins/ipam/host-local\n";
/// The section that has the line.
const SECTION: &[u8] = b".go.buildinfo\0";
/// Larger than any of the parts that are read.
const MOST: u64 = 1 << 20;

/// Is it the `host-local` of the reference plugins, and no script, other program or other implementation? One that somebody changed and
/// built from a package of the same name looks the same. A file that cannot be read is not.
pub(crate) fn is_reference(program: &Path) -> bool {
    build_information(program).is_ok_and(|text| text.windows(LINE.len()).any(|part| part == LINE))
}

/// Empty where the program was not made by Go. Every ADD asks, so a few parts of the file are read, and not all of it.
fn build_information(program: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(program)?;
    let header = Elf::parse_header(&part(&file, 0, SIZEOF_EHDR as u64)?).map_err(wrong)?;
    let context = Ctx::new(
        header.container().map_err(wrong)?,
        header.endianness().map_err(wrong)?,
    );
    let length = u64::from(header.e_shnum) * u64::from(header.e_shentsize);
    let table = part(&file, header.e_shoff, length)?;
    let sections =
        SectionHeader::parse_from(&table, 0, header.e_shnum.into(), context).map_err(wrong)?;
    let read = |section: &SectionHeader| part(&file, section.sh_offset, section.sh_size);
    let names = sections
        .get(usize::from(header.e_shstrndx))
        .map(read)
        .transpose()?
        .unwrap_or_default();
    let is_meant = |section: &&SectionHeader| {
        names
            .get(section.sh_name..)
            .is_some_and(|name| name.starts_with(SECTION))
    };
    Ok(sections
        .iter()
        .find(is_meant)
        .map(read)
        .transpose()?
        .unwrap_or_default())
}

fn wrong(error: goblin::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn part(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = Some(length)
        .filter(|length| *length <= MOST)
        .and_then(|length| usize::try_from(length).ok());
    let mut bytes = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn scripts_other_programs_and_garbage_are_not_the_reference_program() {
        let home = tempfile::tempdir().unwrap();
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let script = [b"#!/bin/sh\n# ".as_slice(), LINE, b"exit 0\n"].concat();
        // A header that promises sections where there are none.
        let mut header = own[..SIZEOF_EHDR].to_vec();
        header[0x28..0x30].copy_from_slice(&u64::MAX.to_le_bytes());
        for (name, content) in [
            ("empty", &[][..]),
            ("script", &script),
            ("header", &header),
            ("half", &own[..own.len() / 2]),
            ("own", &own),
        ] {
            let file = home.path().join(name);
            fs::write(&file, content).unwrap();
            assert!(!is_reference(&file), "{name}");
        }
        assert!(!is_reference(&home.path().join("absent")));
        assert!(!is_reference(home.path()));
    }
}
