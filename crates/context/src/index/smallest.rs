//! The next document that still fits, without looking at those that do not: a tree of smallest costs.

/// A tree over costs in order.
#[derive(Debug)]
pub(super) struct Smallest {
    leaves: usize,
    /// Node 1 is the top; the leaves are the second half.
    nodes: Vec<u32>,
    count: usize,
}

impl Smallest {
    pub(super) fn over(costs: impl Iterator<Item = u32>) -> Self {
        let costs: Vec<u32> = costs.collect();
        let leaves = costs.len().next_power_of_two();
        let mut nodes = vec![u32::MAX; 2 * leaves];
        nodes[leaves..leaves + costs.len()].copy_from_slice(&costs);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Self { leaves, nodes, count: costs.len() }
    }

    /// The first place from `from` on whose cost is at most `limit`.
    pub(super) fn next_within(&self, from: usize, limit: u32) -> Option<usize> {
        if from >= self.count {
            return None;
        }
        let mut node = self.leaves + from;
        // Up and to the right until something below fits, then down to the leftmost that does.
        while self.nodes[node] > limit {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node = if self.nodes[2 * node] <= limit { 2 * node } else { 2 * node + 1 };
        }
        // Behind the last there is only padding, which costs the most there is.
        let place = node - self.leaves;
        (place < self.count).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::Smallest;

    #[test]
    fn finds_what_a_walk_finds() {
        let mut state = 1_u32;
        for count in 0..70_usize {
            let costs: Vec<u32> = (0..count)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) % 12
                })
                .collect();
            let tree = Smallest::over(costs.iter().copied());
            for from in 0..=count + 1 {
                for limit in (0..13).chain([u32::MAX]) {
                    let walked = (from..count).find(|place| costs[*place] <= limit);
                    assert_eq!(tree.next_within(from, limit), walked, "{costs:?} from {from} within {limit}");
                }
            }
        }
    }
}
