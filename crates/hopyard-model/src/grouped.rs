//! Values by what they have in common.

/// Each value once, in the order in which they come first.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The values of each key, keys in the order in which they come first.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_their_values_keep_their_order() {
        let pairs = [("b", 1), ("a", 2), ("b", 3), ("c", 2)];
        let groups = [("b", vec![1, 3]), ("a", vec![2]), ("c", vec![2])];
        assert_eq!(grouped(pairs), groups);
        assert!(grouped::<u8, u8>([]).is_empty());
    }

    #[test]
    fn values_are_there_once_in_their_order() {
        assert_eq!(distinct(["b", "a", "b", "c", "a"]), ["b", "a", "c"]);
    }
}
