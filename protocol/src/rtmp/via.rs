//! The places that a stream has come by (each a name at a gateway, as a number that only that gateway
//! knows), told in `connect`: what leads in a circle shows.
//!
//! Other servers pass over a property that they do not know.

use crate::amf0::Value;
use crate::limits::MAX_VIA;

/// The property's name.
pub(super) const KEY: &str = "weirVia";

pub(super) fn write(places: &[u64]) -> Value {
    Value::StrictArray(places.iter().map(|place| format!("{place:016x}").as_str().into()).collect())
}

/// The places in what a client says of itself, as far as they can be read.
pub(super) fn read(said: &Value) -> Vec<u64> {
    let Some(Value::StrictArray(places)) = said.get(KEY) else { return Vec::new() };
    let ids = places.iter().filter_map(|id| u64::from_str_radix(id.as_str()?, 16).ok());
    ids.take(MAX_VIA).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::command::object;

    #[test]
    fn places_are_read_as_written_and_not_too_many() {
        for places in [vec![], vec![0, u64::MAX, 7], vec![3; MAX_VIA]] {
            assert_eq!(read(&object([(KEY, write(&places))])), places);
        }
        assert_eq!(read(&object([(KEY, write(&[3; MAX_VIA + 1]))])).len(), MAX_VIA);
        let odd = Value::StrictArray(vec![1.0.into(), "x".into(), "00000000000000000001".into()]);
        for (said, places) in [(Value::Null, vec![]), ("x".into(), vec![]), (odd, vec![1])] {
            assert_eq!(read(&object([(KEY, said)])), places);
        }
    }
}
