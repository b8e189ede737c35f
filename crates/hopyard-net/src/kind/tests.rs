use std::io;

use netlink_packet_core::Emitable;

use super::*;
use crate::attrs::{attribute, u16_at};
use crate::link::{IFINFOMSG, IFLA_INFO_KIND, IFLA_LINKINFO};

const IFLA_INFO_DATA: u16 = 2;
const IFLA_IPVLAN_MODE: u16 = 1;

fn ipvlan(mode: IpvlanMode) -> LinkKind<'static> {
    LinkKind::Ipvlan {
        lower: "up0".to_owned(),
        mode,
    }
}

/// By the numbers of `include/uapi/linux/if_link.h`.
#[test]
fn an_ipvlan_is_asked_for_in_its_mode() {
    for (mode, number) in [
        (IpvlanMode::L2, 0),
        (IpvlanMode::L3, 1),
        (IpvlanMode::L3s, 2),
    ] {
        let message = message(&NewLink::new("eth0", ipvlan(mode)), Some(7));
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        let info = attribute(&bytes, IFINFOMSG, IFLA_LINKINFO).unwrap();
        let kind = attribute(info, 0, IFLA_INFO_KIND).unwrap();
        assert!(kind.starts_with(b"ipvlan"), "{kind:?}");
        let data = attribute(info, 0, IFLA_INFO_DATA).unwrap();
        let asked = attribute(data, 0, IFLA_IPVLAN_MODE).unwrap();
        assert_eq!(u16_at(asked, 0), Some(number), "{mode:?}: {asked:?}");
    }
}

#[test]
fn a_kernel_without_ipvlan_mode_l3s_is_told_from_one_without_ipvlan() {
    let refused = |mode, errno, detail: Option<&str>| {
        let refusal = Refusal {
            error: io::Error::from_raw_os_error(errno),
            detail: detail.map(str::to_owned),
        };
        refused("create ipvlan `eth0` on `up0`", &ipvlan(mode), refusal)
    };
    let lacks = |error: Error| match error {
        Error::Unsupported {
            feature, remedy, ..
        } => (feature, remedy),
        other => panic!("{other:?}"),
    };
    let (feature, remedy) = lacks(refused(IpvlanMode::L3s, ENOTSUPP, None));
    assert_eq!(feature, "ipvlan mode l3s");
    assert!(remedy.contains("CONFIG_IPVLAN_L3S"), "{remedy}");
    for mode in [IpvlanMode::L2, IpvlanMode::L3s] {
        let unknown = Some("Unknown device type");
        let (feature, remedy) = lacks(refused(mode, libc::EOPNOTSUPP, unknown));
        assert_eq!(feature, "ipvlan");
        assert!(remedy.contains("load module `ipvlan`"), "{remedy}");
    }
    let other = refused(IpvlanMode::L2, ENOTSUPP, None);
    assert!(!matches!(other, Error::Unsupported { .. }), "{other:?}");
}
