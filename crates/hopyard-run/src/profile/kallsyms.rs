//! Names of kernel functions: /proc/kallsyms, with modules and BPF programs.

use std::ops::Range;

use super::Error;

const FILE: &str = "/proc/kallsyms";
/// No function is longer. An address that is further from the symbol before it belongs to something without a name.
const LONGEST: u64 = 1 << 16;

/// The kernel's symbols at one time. BPF programs come and go, so read them while the lab exists.
#[derive(Debug)]
pub struct Symbols {
    text: String,
    /// By address.
    symbols: Vec<Symbol>,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// Position of its name in the text; `None` for data, which only ends the function before it.
    name: Option<(u32, u32)>,
}

impl Symbols {
    /// Reads them.
    ///
    /// # Errors
    /// They cannot be read, or only without addresses.
    pub fn read() -> Result<Self, Error> {
        let text = std::fs::read_to_string(FILE).map_err(Error::Symbols)?;
        Self::parse(text).ok_or(Error::NoAddresses)
    }

    /// `None` if no function has an address.
    fn parse(text: String) -> Option<Self> {
        let mut symbols = Vec::with_capacity(text.len() / 40);
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            symbols.extend(symbol(line, at));
            at += line.len();
        }
        // A stable sort: of several names for one address, the first is the one that unwinders print.
        symbols.sort_by_key(|symbol| symbol.address);
        let known = symbols.iter().any(|s| s.name.is_some() && s.address != 0);
        known.then_some(Self { text, symbols })
    }

    /// The function at an address: `br_forward`, or `nft_do_chain [nf_tables]` for one in a module.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        let last = self.symbols.get(after.checked_sub(1)?)?;
        if address - last.address > LONGEST {
            return None;
        }
        let first = self.symbols.partition_point(|s| s.address < last.address);
        let named = self.symbols.get(first..after)?;
        let name = named.iter().find_map(|s| self.text_of(s))?;
        Some(name.replace('\t', " "))
    }

    /// The addresses of a function, if the kernel has it.
    #[must_use]
    pub fn span(&self, name: &str) -> Option<Range<u64>> {
        let own = |symbol: &&Symbol| self.text_of(symbol) == Some(name);
        let start = self.symbols.iter().find(own)?.address;
        let next = self.symbols.partition_point(|s| s.address <= start);
        let farthest = start.saturating_add(LONGEST);
        let end = self.symbols.get(next).map_or(farthest, |s| s.address);
        Some(start..end.min(farthest))
    }

    fn text_of(&self, symbol: &Symbol) -> Option<&str> {
        let (start, end) = symbol.name?;
        self.text.get(start as usize..end as usize)
    }

    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().filter_map(|s| self.text_of(s))
    }
}

/// `ADDRESS TYPE NAME`, and a module after a tab.
fn symbol(line: &str, at: usize) -> Option<Symbol> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let code = matches!(kind, "t" | "T" | "w" | "W");
    let start = at + address.len() + kind.len() + 2;
    let end = start + name.trim_end().len();
    let place = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
    Some(Symbol {
        address: u64::from_str_radix(address, 16).ok()?,
        name: (code && !name.starts_with("__pfx_")).then_some(place),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 t alias
ffffffff81001000 T udp_sendmsg
ffffffff81001ff0 t __pfx_ip_output
ffffffff81002000 T ip_output
ffffffff82000000 D some_data
ffffffffc0000000 t nft_do_chain\t[nf_tables]
ffffffffc0001000 t bpf_prog_0123456789abcdef_hopyard_port\t[bpf]
";

    #[test]
    fn addresses_have_the_name_of_the_function_they_are_in() {
        let symbols = Symbols::parse(TEXT.to_owned()).unwrap();
        for (address, name) in [
            (0xffff_ffff_8100_0000, Some("_stext")),
            (0xffff_ffff_8100_1234, Some("udp_sendmsg")),
            (0xffff_ffff_8100_2000, Some("ip_output")),
            (0xffff_ffff_8200_0001, None),
            (0xffff_ffff_8300_0000, None),
            (0xffff_ffff_c000_0010, Some("nft_do_chain [nf_tables]")),
            (
                0xffff_ffff_c000_1fff,
                Some("bpf_prog_0123456789abcdef_hopyard_port [bpf]"),
            ),
            (0x10, None),
            (u64::MAX, None),
        ] {
            assert_eq!(symbols.name(address).as_deref(), name, "{address:x}");
        }
    }

    #[test]
    fn functions_are_where_the_next_symbol_has_not_begun() {
        let symbols = Symbols::parse(TEXT.to_owned()).unwrap();
        let end = 0xffff_ffff_8100_1ff0;
        assert_eq!(symbols.span("udp_sendmsg"), Some(end - 0xff0..end));
        assert_eq!(symbols.span("udp_send"), None);
        assert_eq!(symbols.span("some_data"), None);
        let last = "bpf_prog_0123456789abcdef_hopyard_port\t[bpf]";
        let last = symbols.span(last).unwrap();
        assert_eq!(last.end - last.start, LONGEST);
    }

    #[test]
    fn without_addresses_there_are_none() {
        let zeros = "0000000000000000 T _stext\n0000000000000000 T udp_sendmsg\n";
        assert!(Symbols::parse(zeros.to_owned()).is_none());
        assert!(Symbols::parse(String::new()).is_none());
        assert!(Symbols::parse("garbage\n\nx y z\n".to_owned()).is_none());
    }
}
