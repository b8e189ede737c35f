//! Where a claim can be tested: codes with their meaning.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($name:ident $code:literal $meaning:literal)+) => {
        /// What it takes to test a claim.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $meaning] #[serde(rename = $code)] $name,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As it is written.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code),+ }
            }

            /// What it means.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),+ }
            }
        }
    };
}

codes! {
    Host "HOST" "one Linux host with network namespaces only"
    StandIn "HOST~" "one host as a stand-in; a remark says what is lost"
    Nic "NIC" "a second machine and a physical adapter for the exact case"
    Vm "VM" "a KVM guest with virtio-net and vhost-net"
    Ovs "OVS" "the openvswitch kernel module; its userspace datapath does not count"
    Brnf "BRNF" "bridge netfilter, with its calls switched on and off"
    Xen "XEN" "Xen with netback"
    Ovz "OVZ" "an OpenVZ kernel"
    Kbuild "KBUILD" "kernels of one's own"
    Pmu "PMU" "hardware counters of cycles and cache misses"
    Trace "TRACE" "kprobes, ftrace or software events"
    Functional "F" "a functional check, no measurement"
}
