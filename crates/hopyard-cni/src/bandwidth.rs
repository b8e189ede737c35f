//! How fast a container gets and sends: capability `bandwidth` of the CNI conventions, and the keys of the reference plugin
//! `bandwidth`. The switch drops what is beyond ([`Rate`]).

use hopyard_switch::{Rate, RateLimit};
use serde_json::Value;

use crate::error::{Error, Result, code};
use crate::values::invalid;

/// Its keys. Rates are in bits a second, bursts in bits; 0: no limit.
pub(crate) const KEYS: [&str; 4] = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"];

/// Where the runtime gives them.
const RUNTIME: &str = "runtimeConfig.bandwidth";

/// The limits of one container, each as seen from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bandwidth {
    /// What it gets.
    pub(crate) ingress: Rate,
    /// What it sends.
    pub(crate) egress: Rate,
}

impl Bandwidth {
    /// Reads the limits of the configuration and of the runtime. As with the reference plugin, those of the configuration hold
    /// alone where it has any.
    ///
    /// # Errors
    /// A value is no number or cannot be kept; a rate comes without a burst, or a burst without a rate.
    pub(crate) fn of(conf: &Value) -> Result<Self> {
        let own = Self::read(conf, "")?;
        let runtime = &conf["runtimeConfig"]["bandwidth"];
        let runtime = match runtime {
            Value::Null | Value::Bool(false) => Self::default(),
            Value::Object(members) => {
                if let Some((key, value)) = members.iter().find(|(key, _)| !is_key(key)) {
                    let msg = format!(
                        "unsupported key `{RUNTIME}.{key}` ({value}): there are {}",
                        KEYS.join(", ")
                    );
                    return Err(Error::new(code::UNSUPPORTED_FIELD, msg));
                }
                Self::read(runtime, &format!("{RUNTIME}."))?
            }
            other => {
                let why = format!("is no object with {}", KEYS.join(", "));
                return Err(invalid(RUNTIME, other, &why));
            }
        };
        Ok(match own == Self::default() {
            true => runtime,
            false => own,
        })
    }

    /// Reads the keys of an object; `place` comes before them in errors.
    fn read(given: &Value, place: &str) -> Result<Self> {
        let [ingress, egress] = ["ingress", "egress"].map(|way| rate(given, place, way));
        Ok(Self {
            ingress: ingress?,
            egress: egress?,
        })
    }
}

fn is_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// The limit of one way.
fn rate(given: &Value, place: &str, way: &str) -> Result<Rate> {
    let [rate_key, burst_key] = ["Rate", "Burst"].map(|what| format!("{way}{what}"));
    let number = |key: &str, unit: &str| match &given[key] {
        Value::Null => Ok(0),
        value => value.as_u64().ok_or_else(|| {
            let why = format!("is no whole number of {unit}");
            invalid(&format!("{place}{key}"), value, &why)
        }),
    };
    let bits_per_s = number(&rate_key, "bits per second")?;
    let burst_bits = number(&burst_key, "bits")?;
    let bad = |key: &str, why: &str| Err(invalid(&format!("{place}{key}"), &given[key], why));
    match (bits_per_s, burst_bits) {
        (0, 0) => return Ok(Rate::Unlimited),
        (_, 0) => {
            let why = format!("needs `{burst_key}` as well: the bits that may pass at once");
            return bad(&rate_key, &why);
        }
        (0, _) => return bad(&burst_key, &format!("needs `{rate_key}` as well")),
        (_, 1..8) => return bad(&burst_key, "is less than a byte"),
        _ => {}
    }
    let cannot = |error| {
        Error::new(
            code::BAD_CONFIG,
            format!("key `{place}{rate_key}`: {error}"),
        )
    };
    let limit = RateLimit::new(bits_per_s).map_err(cannot)?;
    // Runtimes write 2^31 or 2^32 bits for "any burst", whatever the rate is: what the switch cannot keep of it is left out.
    let most = bits_per_s / 8 * RateLimit::MOST_BURST_S;
    let limit = limit.with_burst((burst_bits / 8).min(most));
    limit.map(Rate::Limited).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn runtime(bandwidth: &Value) -> Value {
        json!({ "runtimeConfig": { "bandwidth": bandwidth } })
    }

    #[test]
    fn rates_are_in_bits_and_so_are_bursts() {
        let both = json!({
            "ingressRate": 8_000_000, "ingressBurst": 1_600_000, "egressRate": 16_000_000, "egressBurst": 8_000_000,
        });
        let wanted = Bandwidth {
            ingress: "8mbit,burst=200000".parse().unwrap(),
            egress: "16mbit,burst=1000000".parse().unwrap(),
        };
        assert_eq!(Bandwidth::of(&runtime(&both)).unwrap(), wanted);
        assert_eq!(Bandwidth::of(&both).unwrap(), wanted);
        let one = json!({ "egressRate": 16_000_000, "egressBurst": 8_000_000, "ingressRate": 0 });
        let found = Bandwidth::of(&runtime(&one)).unwrap();
        assert_eq!(
            (found.ingress, found.egress),
            (Rate::Unlimited, wanted.egress)
        );
    }

    #[test]
    fn what_asks_for_nothing_limits_nothing() {
        for nothing in [
            json!(null),
            json!(false),
            json!({}),
            json!({ "ingressRate": 0, "egressBurst": 0 }),
        ] {
            let found = Bandwidth::of(&runtime(&nothing)).unwrap();
            assert_eq!(found, Bandwidth::default());
        }
    }

    #[test]
    fn the_configuration_holds_alone_where_it_has_limits() {
        let mut conf = runtime(&json!({ "egressRate": 8_000_000, "egressBurst": 8_000_000 }));
        conf["ingressRate"] = 8_000_000.into();
        conf["ingressBurst"] = 8_000_000.into();
        let found = Bandwidth::of(&conf).unwrap();
        assert_ne!(found.ingress, Rate::Unlimited);
        assert_eq!(found.egress, Rate::Unlimited);
    }

    #[test]
    fn a_burst_beyond_what_can_be_kept_is_what_can_be_kept() {
        let any = json!({ "ingressRate": 8_000, "ingressBurst": u64::MAX });
        let limit = Bandwidth::of(&runtime(&any))
            .unwrap()
            .ingress
            .limit()
            .unwrap();
        assert_eq!(limit.burst_bytes(), 1_000 * RateLimit::MOST_BURST_S);
    }

    #[test]
    fn wrong_values_are_named() {
        for (key, wrong) in [
            ("ingressRate", json!({ "ingressRate": 8_000_000 })),
            ("egressBurst", json!({ "egressBurst": 8_000_000 })),
            (
                "ingressRate",
                json!({ "ingressRate": "8mbit", "ingressBurst": 8_000 }),
            ),
            (
                "ingressRate",
                json!({ "ingressRate": -1, "ingressBurst": 8_000 }),
            ),
            (
                "egressRate",
                json!({ "egressRate": 1.5e6, "egressBurst": 8_000 }),
            ),
            (
                "ingressRate",
                json!({ "ingressRate": 7_999, "ingressBurst": 8_000 }),
            ),
            (
                "egressRate",
                json!({ "egressRate": 100_000_000_001_u64, "egressBurst": 8_000 }),
            ),
            (
                "egressBurst",
                json!({ "egressRate": 8_000, "egressBurst": 7 }),
            ),
        ] {
            for (conf, key) in [
                (runtime(&wrong), format!("`{RUNTIME}.{key}`")),
                (wrong, format!("`{key}`")),
            ] {
                let error = Bandwidth::of(&conf).unwrap_err();
                assert_eq!(error.code, code::BAD_CONFIG, "{error}");
                assert!(error.msg.contains(&key), "{error}");
            }
        }
        let error = Bandwidth::of(&runtime(&json!([1]))).unwrap_err();
        assert_eq!(error.code, code::BAD_CONFIG);
        let error = Bandwidth::of(&runtime(&json!({ "ingressrate": 1 }))).unwrap_err();
        assert_eq!(error.code, code::UNSUPPORTED_FIELD);
        assert!(
            error.msg.contains("`runtimeConfig.bandwidth.ingressrate`"),
            "{error}"
        );
    }
}
