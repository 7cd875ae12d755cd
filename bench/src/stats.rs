//! Medians and percentiles. Deliberately absent: means, which one bad run moves.

/// The middle of an odd number of values, between the two middle ones of an even number; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(upper, *sorted.get(sorted.len() / 2 - 1)?))
}

/// The least and the greatest; `None` of nothing.
pub fn span(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    let greatest = values.iter().copied().reduce(f64::max)?;
    Some((least, greatest))
}

/// The smallest value that at least `per_mille` thousandths of the sorted values do not exceed (nearest rank); zero
/// of nothing.
pub fn percentile(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_two_middle_ones() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(span(&[3.0, 1.0, 2.0]), Some((1.0, 3.0)));
    }

    #[test]
    fn a_percentile_is_a_value_that_occurred() {
        let values: Vec<u64> = (1..=1_000).collect();
        assert_eq!([500, 900, 990, 999, 1_000].map(|p| percentile(&values, p)), [500, 900, 990, 999, 1_000]);
        assert_eq!(percentile(&[7], 999), 7);
        assert_eq!(percentile(&[7, 9], 500), 7);
        assert_eq!(percentile(&[], 500), 0);
    }
}
