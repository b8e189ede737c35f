//! Reading netlink attributes out of replies.
//!
//! Requests are built from `netlink-packet-route`'s types, and with [`nested`] where it has none. Replies are read attribute by attribute
//! instead: only what is needed, so that an attribute a newer kernel added cannot break a dump.

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NLA_TYPE_MASK, NlasIterator};

/// The attributes behind a fixed header of `header` bytes, as (type, value). Stops at the first
/// malformed one.
pub(crate) fn attributes(message: &[u8], header: usize) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(message.get(header..).unwrap_or_default())
        .map_while(Result::ok)
        .map(|attribute| {
            let inner = attribute.into_inner();
            let length = usize::from(u16_at(inner, 0).unwrap_or(0));
            let kind = u16_at(inner, 2).unwrap_or(0) & NLA_TYPE_MASK;
            (kind, inner.get(4..length).unwrap_or_default())
        })
}

/// Bytes of `struct tcmsg`, which is before the attributes of queueing disciplines and classifiers.
pub(crate) const TCMSG: usize = 20;
pub(crate) const TCA_KIND: u16 = 1;

/// The value of one attribute.
pub(crate) fn attribute(message: &[u8], header: usize, wanted: u16) -> Option<&[u8]> {
    attributes(message, header).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let raw = bytes.get(offset..offset + 2)?;
    Some(u16::from_ne_bytes(raw.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let raw = bytes.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes(raw.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let raw = bytes.get(offset..offset + 8)?;
    Some(u64::from_ne_bytes(raw.try_into().ok()?))
}

/// A zero-terminated string value.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// An attribute that holds others.
pub(crate) fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    let mut value = vec![0; attributes.buffer_len()];
    attributes.emit(&mut value);
    DefaultNla::new(kind | NLA_F_NESTED, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_attributes_and_stops_at_rubbish() {
        let mut message = vec![0xff; 4];
        message.extend(8u16.to_ne_bytes());
        message.extend((3u16 | 0x8000).to_ne_bytes());
        message.extend(7u32.to_ne_bytes());
        message.extend(6u16.to_ne_bytes());
        message.extend(5u16.to_ne_bytes());
        message.extend(b"x\0\0\0");
        message.extend(200u16.to_ne_bytes());
        message.extend(9u16.to_ne_bytes());
        let all: Vec<_> = attributes(&message, 4).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(
            attribute(&message, 4, 3).and_then(|value| u32_at(value, 0)),
            Some(7)
        );
        assert_eq!(attribute(&message, 4, 5).map(text).as_deref(), Some("x"));
        assert_eq!(attribute(&message, 4, 9), None);
        assert_eq!(attributes(&message, 400).count(), 0);
    }
}
