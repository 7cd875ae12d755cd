//! Which addresses a delivery may reach (G12), as types; absent: resolution, and any notion of who asks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The egress rules. By default only globally reachable unicast addresses pass; an operator opens more with networks.
/// Behind a [`Proxy`](crate::Proxy), which resolves names itself, they judge address literals alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    allow: Vec<IpNet>,
    unguarded: bool,
}

/// An address that the rules refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The refused address, as the destination gave it.
    pub address: IpAddr,
    /// The rule that refuses it: `unspecified`, `loopback`, `private`, `link_local`, `cgnat`, `multicast`,
    /// `metadata`, `reserved`, or, for IPv6 addresses that carry an IPv4 address, `ipv4_compatible`, `nat64`, `6to4`
    /// or `teredo`.
    pub rule: &'static str,
    /// The flag that would allow it, for instance `--allow-net 127.0.0.0/8`.
    pub allow_flag: String,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} and refused; {} would allow it", self.address, self.rule, self.allow_flag)
    }
}

impl std::error::Error for Blocked {}

impl Egress {
    /// The default rules, opened for the networks in `allow`. A network of IPv4-mapped addresses counts as the IPv4
    /// network it means.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow: allow.into_iter().map(canonical_net).collect(), unguarded: false }
    }

    /// No rules: for addresses that the operator typed.
    pub fn unguarded() -> Self {
        Self { allow: Vec::new(), unguarded: true }
    }

    /// Judges one address. An IPv4-mapped address is judged as the IPv4 address it is; an address that embeds an IPv4
    /// address (NAT64, 6to4, Teredo, IPv4-compatible) needs both itself and the embedded one allowed.
    ///
    /// # Errors
    ///
    /// [`Blocked`] names the rule and the flag that would lift it.
    pub fn check(&self, ip: IpAddr) -> Result<(), Blocked> {
        if self.unguarded {
            return Ok(());
        }
        let ip = ip.to_canonical();
        self.check_one(ip)?;
        match ip {
            IpAddr::V6(address) => match embedded_v4(address) {
                Some(inner) => self.check_one(IpAddr::V4(inner)),
                None => Ok(()),
            },
            IpAddr::V4(_) => Ok(()),
        }
    }

    fn check_one(&self, address: IpAddr) -> Result<(), Blocked> {
        let rule = match address {
            IpAddr::V4(address) => rule_v4(address),
            IpAddr::V6(address) => rule_v6(address),
        };
        match rule {
            Some(rule) if !self.allow.iter().any(|net| net.contains(&address)) => Err(Blocked {
                address,
                rule,
                allow_flag: format!("--allow-net {}", narrowest(address, rule)),
            }),
            _ => Ok(()),
        }
    }
}

/// The network to suggest: the one address, except that the whole of loopback is the same machine anyway.
fn narrowest(address: IpAddr, rule: &str) -> IpNet {
    match address {
        IpAddr::V4(_) if rule == "loopback" => LOOPBACK_V4.into(),
        _ => IpNet::from(address),
    }
}

fn canonical_net(net: IpNet) -> IpNet {
    match net {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => match IpAddr::V6(v6.network()).to_canonical() {
            // The prefix is within 96..=128, so the shorter one is within 0..=32.
            IpAddr::V4(v4) => Ipv4Net::new(v4, v6.prefix_len() - 96).map_or(net, IpNet::V4),
            IpAddr::V6(_) => net,
        },
        IpNet::V4(_) | IpNet::V6(_) => net,
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

const LOOPBACK_V4: Ipv4Net = v4(127, 0, 0, 0, 8);

/// IPv4 rules, first match wins. Sources: the IANA special-purpose registry (RFC 6890 and its updates), and the
/// addresses at which cloud providers serve instance credentials.
const RULES_V4: &[(Ipv4Net, &str)] = &[
    (v4(169, 254, 169, 254, 32), "metadata"), // AWS, Azure, Google Cloud and most others
    (v4(169, 254, 170, 2, 32), "metadata"),   // AWS container credentials
    (v4(100, 100, 100, 200, 32), "metadata"), // Alibaba Cloud
    (v4(192, 0, 0, 192, 32), "metadata"),     // Oracle Cloud
    (v4(0, 0, 0, 0, 32), "unspecified"),
    (v4(0, 0, 0, 0, 8), "reserved"), // this network, RFC 791
    (v4(10, 0, 0, 0, 8), "private"), // RFC 1918, as the next two
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(100, 64, 0, 0, 10), "cgnat"), // RFC 6598
    (LOOPBACK_V4, "loopback"),
    (v4(169, 254, 0, 0, 16), "link_local"), // RFC 3927
    (v4(192, 0, 0, 0, 24), "reserved"),     // protocol assignments, RFC 6890
    (v4(192, 0, 2, 0, 24), "reserved"),     // documentation, RFC 5737, as the next two
    (v4(198, 51, 100, 0, 24), "reserved"),
    (v4(203, 0, 113, 0, 24), "reserved"),
    (v4(192, 88, 99, 0, 24), "reserved"), // former 6to4 relays, RFC 7526
    (v4(198, 18, 0, 0, 15), "reserved"),  // benchmarking, RFC 2544
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"), // with the limited broadcast address
];

/// IPv6 rules, first match wins; IPv4-mapped addresses never come here.
const RULES_V6: &[(Ipv6Net, &str)] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), "metadata"), // AWS
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), "metadata"),  // Google Cloud
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "ipv4_compatible"), // RFC 4291 §2.5.5.1, deprecated
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "nat64"),   // RFC 6052
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "nat64"),   // RFC 8215
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "teredo"),     // RFC 4380
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4"),       // RFC 3056
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "reserved"),   // protocol assignments, RFC 2928
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "reserved"), // documentation, RFC 3849
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "reserved"),   // documentation, RFC 9637
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "private"),     // unique local, RFC 4193
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link_local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "private"), // former site-local, RFC 3879
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

/// The only IPv6 block that holds globally reachable unicast addresses; the rest is unassigned or special.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

fn rule_v4(address: Ipv4Addr) -> Option<&'static str> {
    RULES_V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, rule)| *rule)
}

fn rule_v6(address: Ipv6Addr) -> Option<&'static str> {
    let named = RULES_V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, rule)| *rule);
    named.or_else(|| (!GLOBAL_UNICAST.contains(&address)).then_some("reserved"))
}

/// The IPv4 address a packet to this IPv6 address would end at, or start a tunnel to.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match rule_v6(address)? {
        "ipv4_compatible" | "nat64" => Some(pair(segments[6], segments[7])),
        "6to4" => Some(pair(segments[1], segments[2])),
        // Teredo stores the client's address with every bit flipped (RFC 4380 §4).
        "teredo" => Some(pair(!segments[6], !segments[7])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(address: &str) -> Option<&'static str> {
        Egress::default().check(address.parse().unwrap()).err().map(|blocked| blocked.rule)
    }

    #[test]
    fn g12_each_special_range_is_refused_by_its_own_rule() {
        let table = [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "reserved"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "cgnat"),
            ("100.127.255.255", "cgnat"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.1.1", "link_local"),
            ("169.254.169.254", "metadata"),
            ("100.100.100.200", "metadata"),
            ("192.0.0.1", "reserved"),
            ("192.0.2.1", "reserved"),
            ("198.18.0.1", "reserved"),
            ("198.19.255.255", "reserved"),
            ("198.51.100.1", "reserved"),
            ("203.0.113.1", "reserved"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "ipv4_compatible"),
            ("::ffff:10.0.0.1", "private"),
            ("64:ff9b::808:808", "nat64"),
            ("64:ff9b:1::808:808", "nat64"),
            ("2001::1", "teredo"),
            ("2001:20::1", "reserved"),
            ("2001:db8::1", "reserved"),
            ("2002:808:808::1", "6to4"),
            ("3fff::1", "reserved"),
            ("100::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private"),
            ("fd12::1", "private"),
            ("fd00:ec2::254", "metadata"),
            ("fe80::1", "link_local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
        ];
        for (address, expected) in table {
            assert_eq!(rule(address), Some(expected), "{address}");
        }
    }

    #[test]
    fn g12_public_addresses_pass() {
        for address in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700::1111"]
        {
            assert_eq!(rule(address), None, "{address}");
        }
    }

    #[test]
    fn g12_the_refusal_prints_the_flag_that_would_allow_it() {
        let blocked = Egress::default().check("127.0.0.9".parse().unwrap()).unwrap_err();
        assert_eq!(blocked.allow_flag, "--allow-net 127.0.0.0/8");
        assert_eq!(
            blocked.to_string(),
            "127.0.0.9 is loopback and refused; --allow-net 127.0.0.0/8 would allow it"
        );
        let blocked = Egress::default().check("10.1.2.3".parse().unwrap()).unwrap_err();
        assert_eq!(blocked.allow_flag, "--allow-net 10.1.2.3/32");
    }

    #[test]
    fn an_allowed_network_opens_only_itself() {
        let egress = Egress::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert_eq!(egress.check("127.0.0.1".parse().unwrap()), Ok(()));
        assert_eq!(egress.check("::ffff:127.0.0.1".parse().unwrap()), Ok(()));
        assert_eq!(egress.check("::1".parse().unwrap()).unwrap_err().rule, "loopback");
        assert_eq!(egress.check("10.0.0.1".parse().unwrap()).unwrap_err().rule, "private");
    }

    #[test]
    fn a_mapped_network_means_the_ipv4_network() {
        let egress = Egress::new(vec!["::ffff:127.0.0.0/104".parse().unwrap()]);
        assert_eq!(egress.check("127.0.0.1".parse().unwrap()), Ok(()));
    }

    #[test]
    fn a_translated_address_needs_its_embedded_address_allowed_too() {
        let nat64: IpNet = "64:ff9b::/96".parse().unwrap();
        let egress = Egress::new(vec![nat64]);
        assert_eq!(egress.check("64:ff9b::808:808".parse().unwrap()), Ok(()));
        assert_eq!(egress.check("64:ff9b::7f00:1".parse().unwrap()).unwrap_err().rule, "loopback");
        assert_eq!(egress.check("64:ff9b::a9fe:a9fe".parse().unwrap()).unwrap_err().rule, "metadata");
        let egress = Egress::new(vec!["2001::/32".parse().unwrap(), "2002::/16".parse().unwrap()]);
        // 0x80ff:0xfffe flipped is 127.0.0.1.
        assert_eq!(egress.check("2001::80ff:fffe".parse().unwrap()).unwrap_err().rule, "loopback");
        assert_eq!(egress.check("2002:a00:1::1".parse().unwrap()).unwrap_err().rule, "private");
    }

    #[test]
    fn unguarded_checks_nothing() {
        assert_eq!(Egress::unguarded().check("169.254.169.254".parse().unwrap()), Ok(()));
    }

    /// The ways to carry an IPv4 address inside an IPv6 one that are refused as such.
    fn carriers(address: Ipv4Addr) -> [IpAddr; 5] {
        let bits = address.to_bits();
        let (high, low) = ((bits >> 16) as u16, bits as u16);
        [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low).into(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low).into(),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low).into(),
            Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low).into(),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into(),
        ]
    }

    proptest! {
        #[test]
        fn g12_any_representation_of_an_address_gets_the_same_verdict(bits: u32, prefix in 0u8..=32) {
            let address = Ipv4Addr::from_bits(bits);
            let allow = IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(bits ^ 1), prefix).unwrap());
            for egress in [Egress::default(), Egress::new(vec![allow])] {
                let plain = egress.check(address.into());
                prop_assert_eq!(&egress.check(address.to_ipv6_mapped().into()), &plain);
                for text in [format!("{bits}"), format!("0x{bits:x}"), format!("0{bits:o}"),
                    format!("[::ffff:{address}]"), format!("[{}]", address.to_ipv6_mapped())] {
                    let literal = crate::Target::parse(&format!("http://{text}/")).unwrap().host_literal();
                    prop_assert_eq!(literal.map(|ip| egress.check(ip)), Some(plain.clone()), "{}", text);
                }
            }
        }

        #[test]
        fn g12_no_carrier_opens_what_the_address_itself_is_refused(bits: u32) {
            let everything_v6 = Egress::new(vec!["::/0".parse().unwrap()]);
            for carrier in carriers(Ipv4Addr::from_bits(bits)) {
                prop_assert!(Egress::default().check(carrier).is_err());
                if bits > 1 {
                    let inner = everything_v6.check(IpAddr::V4(Ipv4Addr::from_bits(bits)));
                    prop_assert_eq!(everything_v6.check(carrier).is_ok(), inner.is_ok(), "{}", carrier);
                }
            }
        }
    }
}
