use super::*;

fn file() -> File {
    toml::from_str(TABLE).unwrap()
}

#[test]
fn names_are_known_and_unique() {
    let file = file();
    let mut names: Vec<&str> = file.subsystem.iter().map(|s| s.name.as_str()).collect();
    for helper in &file.helper {
        let otherwise = helper.otherwise.as_str();
        assert!(
            otherwise == UNCLASSIFIED || names.contains(&otherwise),
            "{otherwise}"
        );
    }
    assert!(file.subsystem.iter().all(|s| !s.about.is_empty()));
    assert!(!names.contains(&UNCLASSIFIED));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_pattern_is_one() {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (pattern, _) in patterns(&file()) {
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        let marker = ["[user]", "[awake]"].contains(&pattern);
        assert!(
            marker || name.len() > 1 && name.chars().all(fits),
            "{pattern}"
        );
    }
}

/// A pattern that is covered by another one of the same class, or occurs twice, is useless.
#[test]
fn every_pattern_says_something() {
    let file = file();
    let all: Vec<_> = patterns(&file).collect();
    let mut idle = Vec::new();
    for (at, (pattern, class)) in all.iter().enumerate() {
        let twice = all[..at].iter().any(|(other, _)| other == pattern);
        assert!(!twice, "{pattern} stands there twice");
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        // The longest other pattern that matches all functions of this one.
        let wider = all
            .iter()
            .filter(|(other, _)| other != pattern)
            .filter_map(|(other, class)| Some((other.strip_suffix('*')?, class)))
            .filter(|(prefix, _)| name.starts_with(prefix))
            .max_by_key(|(prefix, _)| prefix.len());
        if wider.is_some_and(|(_, wide)| wide == class) {
            idle.push((pattern, wider));
        }
    }
    assert!(idle.is_empty(), "others say the same: {idle:#?}");
}

#[test]
fn well_known_functions_are_where_they_belong() {
    for (function, subsystem) in [
        ("[user]", "user"),
        ("entry_SYSCALL_64_after_hwframe", "syscall"),
        ("__sys_sendto", "syscall"),
        ("security_socket_sendmsg", "security"),
        ("_copy_from_iter", "copy"),
        ("rep_movs_alternative", "copy"),
        ("tcp_ack", "tcp"),
        ("__inet_lookup_established", "tcp"),
        ("udp_queue_rcv_one_skb", "udp"),
        ("unix_stream_sendmsg", "unix"),
        ("vrf_l3_rcv", "ip"),
        ("macsec_start_xmit", "macsec"),
        ("xsk_rcv", "af_xdp"),
        ("xdp_do_redirect", "bpf"),
        ("ip_finish_output2", "ip"),
        ("ip6_output", "ip"),
        ("neigh_resolve_output", "ip"),
        ("nf_hook_slow", "netfilter"),
        ("nft_do_chain", "netfilter"),
        ("br_nf_pre_routing", "netfilter"),
        ("br_nf_forward_ip.part.0", "netfilter"),
        ("ip_sabotage_in", "netfilter"),
        ("br_handle_frame", "bridge"),
        ("__br_forward", "bridge"),
        ("ovs_flow_tbl_lookup_stats [openvswitch]", "ovs"),
        ("something_new [openvswitch]", "ovs"),
        ("something_new [nf_tables]", "netfilter"),
        ("macvlan_start_xmit", "macvlan"),
        ("veth_xmit", "veth"),
        ("bpf_prog_980042746ecbeb98_hopyard_port_in [bpf]", "bpf"),
        ("bpf_prog_980042746ecbeb98_hopyard_wire_ou [bpf]", "wire"),
        ("bpf_prog_980042746ecbeb98_hopyard_side_in [bpf]", "wire"),
        ("hopyard_wire_of_somebody [bpf]", "bpf"),
        ("__htab_map_lookup_elem", "bpf"),
        ("bpf_lsm_socket_recvmsg", "security"),
        ("tun_get_user", "tap"),
        ("vxlan_xmit_one", "vxlan"),
        ("ipip_tunnel_xmit [ipip]", "vxlan"),
        ("wg_packet_encrypt_worker [wireguard]", "wireguard"),
        ("chacha_2block_xor_avx512vl [chacha_x86_64]", "crypto"),
        ("poly1305_blocks_avx2 [poly1305_x86_64]", "crypto"),
        ("esp_output_head [esp4]", "ipsec"),
        ("xfrm_lookup_with_ifid", "ip"),
        ("xfrm_output_resume", "ipsec"),
        ("gcmaes_encrypt [aesni_intel]", "crypto"),
        ("__alloc_skb", "skb memory"),
        ("skb_release_data", "skb memory"),
        ("csum_partial", "checksum"),
        ("__skb_checksum_complete", "checksum"),
        ("net_rx_action", "softirq"),
        ("__netif_receive_skb_core.constprop.0", "softirq"),
        ("__dev_queue_xmit", "device queue"),
        ("finish_task_switch.isra.0", "scheduler"),
        ("sock_def_readable", "scheduler"),
        ("_raw_spin_lock", "locking"),
        ("__pv_queued_spin_lock_slowpath", "locking"),
        ("__mod_timer", "timers"),
        ("tick_nohz_idle_exit", "idle entry"),
        ("ext4_writepages", "files"),
        ("some_function_of_tomorrow", UNCLASSIFIED),
    ] {
        let expected = Place::Busy {
            subsystem,
            function,
        };
        assert_eq!(place(&["client", function]), expected);
    }
}

#[test]
fn helpers_belong_to_their_callers() {
    let of = |stack: &[&'static str]| match place(stack) {
        Place::Busy {
            subsystem,
            function,
        } => (subsystem, function),
        Place::Idle => ("", ""),
    };
    let unlock = "_raw_spin_unlock_irqrestore";
    for (stack, expected) in [
        (&["client", "try_to_wake_up", unlock][..], "scheduler"),
        (&["client", "enqueue_to_backlog", unlock], "softirq"),
        (&["client", unlock], "locking"),
        // A program's clock is its own.
        (
            &[
                "client",
                "bpf_prog_01_hopyard_wire_ou",
                "bpf_ktime_get_ns",
                "read_tsc",
            ],
            "wire",
        ),
        (
            &[
                "client",
                "bpf_prog_01_hopyard_port_in",
                "bpf_ktime_get_ns",
                "read_tsc",
            ],
            "bpf",
        ),
        (
            &[
                "client",
                "alloc_file_pseudo",
                "kmem_cache_alloc_noprof",
                "__slab_alloc",
            ],
            "files",
        ),
        (
            &["client", "__alloc_skb", "kmem_cache_alloc_node_noprof"],
            "skb memory",
        ),
        (&["kworker/0:1", "kfree"], "skb memory"),
        (
            &[
                "client",
                "br_nf_pre_routing",
                "skb_ext_add",
                "kmem_cache_alloc_noprof",
            ],
            "netfilter",
        ),
        (
            &[
                "client",
                "veth_xmit",
                "__dev_forward_skb",
                "srso_return_thunk",
            ],
            "veth",
        ),
        // An unknown function is not classified by its caller.
        (
            &["client", "udp_sendmsg", "some_function_of_tomorrow"],
            UNCLASSIFIED,
        ),
        (
            &["client", "some_function_of_tomorrow", "memcpy"],
            UNCLASSIFIED,
        ),
        (
            &["client", "__netif_receive_skb_core", "[unknown]"],
            UNCLASSIFIED,
        ),
        (&["client"], UNCLASSIFIED),
        (&[], UNCLASSIFIED),
    ] {
        assert_eq!(of(stack).0, expected, "{stack:?}");
    }
    assert_eq!(of(&["c", "ip_rcv", "memcpy"]), ("ip", "ip_rcv"));
}

#[test]
fn halted_is_idle_and_its_entry_is_not() {
    let idle = |stack: &[&'static str]| place(stack) == Place::Idle;
    assert!(idle(&["idle", "do_idle", "pv_native_safe_halt"]));
    assert!(!idle(&["idle", "do_idle", "tick_nohz_idle_enter"]));
    // Work of an interrupt on an idle CPU.
    let interrupted = [
        "idle",
        "do_idle",
        "pv_native_safe_halt",
        "irq_exit_rcu",
        "udp_rcv",
    ];
    assert!(!idle(&interrupted));
}
