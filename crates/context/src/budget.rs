//! Spends a budget: the best first, whatever does not fit passed over, to the last that fits.

use std::collections::BinaryHeap;

/// Takes from `ranked` in descending order what fits into `left`, and lowers it by what was taken.
///
/// What no longer fits now will never fit again, so it is dropped as a whole instead of being put in order; not after each
/// misfit, which could be many, but ever more seldom.
pub(crate) fn spend<T: Ord>(ranked: Vec<T>, left: &mut u64, cost: impl Fn(&T) -> u64) -> Vec<T> {
    let mut taken = Vec::new();
    let mut ranked = BinaryHeap::from(ranked);
    let mut misfits = 0_usize;
    while let Some(best) = ranked.pop() {
        let price = cost(&best);
        if price <= *left {
            *left -= price;
            taken.push(best);
            continue;
        }
        misfits += 1;
        if misfits.is_power_of_two() {
            let mut rest = ranked.into_vec();
            rest.retain(|other| cost(other) <= *left);
            ranked = BinaryHeap::from(rest);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::spend;

    #[test]
    fn it_is_what_a_walk_in_order_takes() {
        let mut state = 7_u64;
        for round in 0..2000 {
            let mut next = |limit: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 40) % limit
            };
            let items: Vec<(u64, u64)> = (0..next(40)).map(|place| (next(9), place * 100 + next(12))).collect();
            let cost = |item: &(u64, u64)| item.1 % 100;
            let budget = next(60);
            let mut sorted = items.clone();
            sorted.sort_unstable_by(|left, right| right.cmp(left));
            let mut walked = budget;
            sorted.retain(|item| {
                let fits = cost(item) <= walked;
                walked -= if fits { cost(item) } else { 0 };
                fits
            });
            let mut left = budget;
            assert_eq!((spend(items, &mut left, cost), left), (sorted, walked), "round {round}");
        }
    }
}
