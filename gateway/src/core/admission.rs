//! Who may connect: bounds on connections in all and per address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::ConnectionLimits;
use crate::metrics::Refused;

/// Shared by all cores; asked once per connection.
pub struct Admission {
    limits: ConnectionLimits,
    total: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection's place, given back when it is dropped.
pub struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, total: AtomicUsize::new(0), by_address: Mutex::default() }
    }

    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Refused> {
        let address = payer(address);
        if self.total.fetch_add(1, Ordering::Relaxed) >= self.limits.connections {
            self.total.fetch_sub(1, Ordering::Relaxed);
            return Err(Refused::ConnectionLimit);
        }
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if *count >= self.limits.connections_per_address {
            self.total.fetch_sub(1, Ordering::Relaxed);
            return Err(Refused::AddressLimit);
        }
        *count += 1;
        Ok(Permit { admission: self.clone(), address })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.total.fetch_sub(1, Ordering::Relaxed);
        let by_address = &self.admission.by_address;
        let mut by_address = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// Whoever has one IPv6 address has its /64, so that counts as one.
pub fn payer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let limits = ConnectionLimits { connections: 3, connections_per_address: 2 };
        let admission = Arc::new(Admission::new(limits));
        let admit = |text: &str| admission.admit(text.parse().unwrap());
        let one = admit("127.0.0.1").unwrap();
        let _mapped = admit("::ffff:127.0.0.1").unwrap();
        assert_eq!(admit("127.0.0.1").err(), Some(Refused::AddressLimit));
        let _other = admit("2001:db8::1").unwrap();
        assert_eq!(admit("127.0.0.9").err(), Some(Refused::ConnectionLimit));
        drop(one);
        let _again = admit("127.0.0.1").unwrap();
        drop((_mapped, _other, _again));
        let first = admit("2001:db8::1").unwrap();
        let _second = admit("2001:db8::2").unwrap();
        assert_eq!(admit("2001:db8::3").err(), Some(Refused::AddressLimit));
        drop(first);
        assert!(admission.by_address.lock().unwrap().len() == 1);
    }
}
