//! The nearest known name to a mistyped one.

/// The candidate that is closest to `typed`, if it is close enough to be what was meant.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed: Vec<char> = typed.to_lowercase().chars().collect();
    // One mistake in a short name, one for every three letters in a longer one.
    let limit = (typed.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&typed, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_previous = vec![0; to.len() + 1];
    let mut previous: Vec<usize> = (0..=to.len()).collect();
    for (row, left) in from.iter().enumerate() {
        let mut current = vec![row + 1; to.len() + 1];
        for (column, right) in to.iter().enumerate() {
            let replaced = previous[column] + usize::from(left != right);
            let mut best = replaced.min(previous[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *left == to[column - 1] && from[row - 1] == *right;
            if swapped {
                best = best.min(before_previous[column - 1] + 1);
            }
            current[column + 1] = best;
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant_and_nothing_else() {
        let names = ["prefix", "import", "timeout_secs", "max_timeout_secs", "args"];
        let cases = [
            ("prefx", Some("prefix")),
            ("Prefix", Some("prefix")),
            ("timeout_sec", Some("timeout_secs")),
            ("tiemout_secs", Some("timeout_secs")),
            ("arg", Some("args")),
            ("colour", None),
            ("", None),
        ];
        for (typed, expected) in cases {
            assert_eq!(nearest(typed, names), expected, "{typed}");
        }
    }
}
