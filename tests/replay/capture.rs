//! A capture file, made by hand.

/// A capture with UDP over IPv4 and IPv6, and TCP between, in ns.
pub(super) fn capture() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    let mut packet = |seconds: u32, ns: u32, ethernet: u16, ip: Vec<u8>, payload: usize| {
        let length = u32::try_from(14 + ip.len() + payload).unwrap();
        for word in [seconds, ns, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([2; 12]);
        bytes.extend(ethernet.to_be_bytes());
        bytes.extend(ip);
        bytes.extend(vec![0; payload]);
    };
    let v4 = |protocol: u8, rest: Vec<u8>, payload: u16| {
        let length = 20 + u16::try_from(rest.len()).unwrap() + payload;
        let [high, low] = length.to_be_bytes();
        let mut header = vec![
            0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        header.extend(rest);
        header
    };
    let udp = |payload: u16| {
        let [high, low] = (8 + payload).to_be_bytes();
        vec![0x30, 0x39, 0x30, 0x3a, high, low, 0, 0]
    };
    let tcp = vec![
        0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0,
    ];
    packet(
        1_700_000_000,
        999_990_000,
        0x0800,
        v4(17, udp(1200), 1200),
        1200,
    );
    packet(1_700_000_000, 999_995_000, 0x0800, v4(6, tcp, 0), 0);
    // Shorter than what udp_trace writes into a datagram.
    packet(1_700_000_001, 2_500, 0x0800, v4(17, udp(20), 20), 20);
    let mut v6 = vec![0x60, 0, 0, 0, 0x01, 0x34, 17, 64];
    v6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    v6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    v6.extend(udp(300));
    packet(1_700_000_002, 2_500, 0x86dd, v6, 300);
    bytes
}
