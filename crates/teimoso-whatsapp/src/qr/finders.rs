//! Counts what looks like a finder pattern (ISO/IEC 18004 §6.3.3), before a picture from outside is searched for a code:
//! the search itself has no bound. Absent: finding the code.

use std::collections::BTreeSet;

/// Dark pixels side by side in a row, and the patch that they are part of.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    patch: usize,
}

/// Patches of dark pixels that touch one another, as sets that are joined.
#[derive(Default)]
struct Patches(Vec<usize>);

impl Patches {
    fn fresh(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn root(&mut self, mut patch: usize) -> usize {
        while self.0[patch] != patch {
            self.0[patch] = self.0[self.0[patch]];
            patch = self.0[patch];
        }
        patch
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// How many dark rings stand around a dark stone: in a row 1:1:3:1:1, the first and the last of one patch and the middle
/// of another.
pub(super) fn finder_patterns(dark: &[bool], width: usize) -> usize {
    let mut patches = Patches::default();
    let mut rows: Vec<Vec<Run>> = Vec::new();
    for row in dark.chunks_exact(width) {
        let above = rows.last().map_or(&[][..], Vec::as_slice);
        let runs = runs(row, above, &mut patches);
        rows.push(runs);
    }
    let mut rings = BTreeSet::new();
    for [left, stone, right] in rows.iter().flat_map(|row| row.array_windows()) {
        if is_in_proportion(*left, *stone, *right) {
            let [left, stone, right] = [left, stone, right].map(|run| patches.root(run.patch));
            if left == right && left != stone {
                rings.insert((left, stone));
            }
        }
    }
    rings.len()
}

/// The runs of a row, joined with those above that they touch.
fn runs(row: &[bool], above: &[Run], patches: &mut Patches) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut from = 0;
    let mut touching = above;
    while let Some(start) = row[from..].iter().position(|dark| *dark).map(|at| from + at) {
        let end = row[start..].iter().position(|dark| !dark).map_or(row.len(), |at| start + at);
        let patch = patches.fresh();
        touching = &touching[touching.partition_point(|run| run.end <= start)..];
        let below = touching.iter().take_while(|run| run.start < end);
        below.for_each(|run| patches.join(run.patch, patch));
        runs.push(Run { start, end, patch });
        from = end;
    }
    runs
}

/// As exact as whoever searches for the code has it: each within three quarters of a module.
fn is_in_proportion(left: Run, stone: Run, right: Run) -> bool {
    let of = |run: Run| run.end - run.start;
    let lengths = [of(left), stone.start - left.end, of(stone), right.start - stone.end, of(right)];
    let module = (lengths[0] + lengths[1] + lengths[3] + lengths[4]) / 4;
    let error = module * 3 / 4;
    let expected = [1, 1, 3, 1, 1].map(|modules| modules * module);
    lengths.iter().zip(expected).all(|(length, expected)| length.abs_diff(expected) <= error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rows: &[&str]) -> usize {
        let dark: Vec<bool> = rows.iter().flat_map(|row| row.chars().map(|pixel| pixel == '#')).collect();
        finder_patterns(&dark, rows[0].len())
    }

    const FINDER: [&str; 7] = ["#######", "#     #", "# ### #", "# ### #", "# ### #", "#     #", "#######"];

    #[test]
    fn a_ring_around_a_stone_is_one_pattern() {
        assert_eq!(count(&FINDER), 1);
        let two: Vec<String> = FINDER.iter().map(|row| format!("{row} {row}")).collect();
        assert_eq!(count(&two.iter().map(String::as_str).collect::<Vec<_>>()), 2);
        assert_eq!(count(&["       "]), 0);
    }

    #[test]
    fn what_is_no_ring_or_has_no_stone_of_its_own_is_none() {
        assert_eq!(count(&FINDER[2..5]), 0, "both ends are patches of their own");
        let mut joined = FINDER;
        joined[1] = "#  #  #";
        assert_eq!(count(&joined), 0, "ring and stone are one patch");
        assert_eq!(
            count(&["##########", "#        #", "# ###### #", "#        #", "##########"]),
            0,
            "its stone is too wide"
        );
    }

    #[test]
    fn patches_are_joined_from_wherever_they_touch() {
        let comb = ["# ### #", "# # # #", "#   # #", "##### #", "    ###"];
        assert_eq!(count(&comb), 0, "all of it is one patch");
    }
}
