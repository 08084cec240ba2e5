//! Statistics of counts: intervals, tests of rate changes, and reproducibility.
//!
//! Instances are not independent: rates depend on scheduling and on the placement of memory, and differ between
//! two runs of one build up to tenfold. The unit of all figures is therefore a [part of a run](parts), or a batch
//! on a device whose batches are independent (the simulated GPU).

pub mod parts;
pub mod rates;

use std::collections::BTreeSet;

use litmus::{Histogram, Outcome};
use statrs::function::gamma::{gamma_ur, ln_gamma};

/// Confidence level of intervals and bounds.
pub const CONFIDENCE: f64 = 0.95;

/// A binomial proportion: successes among trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proportion {
    count: u64,
    total: u64,
}

/// A closed interval of probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Proportion {
    /// Creates a proportion of `count` successes in `total` trials; `count` is capped at `total`.
    pub fn new(count: u64, total: u64) -> Proportion {
        Proportion { count: count.min(total), total }
    }

    /// Returns the relative frequency; 0 without trials.
    pub fn rate(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.count as f64 / self.total as f64 }
    }

    /// Returns the two-sided Clopper–Pearson interval at [`CONFIDENCE`], or [0, 1] without trials.
    pub fn interval(self) -> Interval {
        clopper_pearson(self.count as f64, self.total as f64)
    }
}

/// The two-sided Clopper–Pearson interval at [`CONFIDENCE`], also for effective numbers that are not integers.
fn clopper_pearson(count: f64, total: f64) -> Interval {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = if count <= 0.0 { 0.0 } else { beta_quantile(count, total - count + 1.0, tail) };
    let high = if count >= total { 1.0 } else { beta_quantile(count + 1.0, total - count, 1.0 - tail) };
    Interval { low, high }
}

/// Returns the upper bound at [`CONFIDENCE`] on the rate of an outcome with count zero in `total` instances.
///
/// It is about 3 ÷ `total`, the rule of three; 1 without instances.
pub fn zero_count_bound(total: u64) -> f64 {
    if total == 0 { 1.0 } else { -((1.0 - CONFIDENCE).ln() / total as f64).exp_m1() }
}

/// Returns the p-values after Holm's correction, in their order.
///
/// If p-values below α are reported as significant, the probability of any false report is below α, for every
/// dependence between tests.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let count = p_values.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut corrected = vec![1.0; count];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((p_values[index] * (count - rank) as f64).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

/// A test statistic with its p-value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significance {
    /// The statistic.
    pub statistic: f64,
    /// The probability of a statistic at least as large under the null hypothesis.
    pub p: f64,
}

/// Upper regularized incomplete gamma function, defined as 1 for x ≤ 0.
fn checked_gamma_ur(a: f64, x: f64) -> f64 {
    if x <= 0.0 { 1.0 } else { gamma_ur(a, x) }
}

/// The two-sample Kolmogorov–Smirnov test: whether two samples come from one distribution.
///
/// The p-value is asymptotic with Stephens' correction, accurate from about eight values per sample. `None`
/// if a sample is empty or contains NaN.
pub fn kolmogorov_smirnov(left: &[f64], right: &[f64]) -> Option<Significance> {
    if left.is_empty() || right.is_empty() || left.iter().chain(right).any(|value| value.is_nan()) {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (left, right) = (sorted(left), sorted(right));
    let share =
        |values: &[f64], at: f64| values.partition_point(|value| *value <= at) as f64 / values.len() as f64;
    let statistic = left
        .iter()
        .chain(&right)
        .map(|at| (share(&left, *at) - share(&right, *at)).abs())
        .fold(0.0, f64::max);
    let (n, m) = (left.len() as f64, right.len() as f64);
    let effective = (n * m / (n + m)).sqrt();
    let lambda = (effective + 0.12 + 0.11 / effective) * statistic;
    Some(Significance { statistic, p: kolmogorov_tail(lambda) })
}

/// The outcome whose rate changed most significantly during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The outcome with the smallest p-value.
    pub outcome: Outcome,
    /// Its rate in the first half.
    pub earlier: f64,
    /// Its rate in the second half.
    pub later: f64,
    /// The p-value of its [two-sample test](kolmogorov_smirnov()) after Bonferroni's correction over all
    /// outcomes.
    pub p: f64,
}

/// Smallest number of stretches in each half: the p-value is asymptotic.
const MIN_STRETCHES: usize = 8;

/// Tests for drift: compares, for each outcome, its rates in the stretches of the first half of a run with
/// the second half.
///
/// A stretch counts as one value for any number of instances, as instances close in time are correlated.
/// The first stretch is skipped: kernels are compiled and dispatch sizes grow in it. `None` if there are too
/// few stretches.
pub fn find_drift(stretches: &[Histogram]) -> Option<Drift> {
    let used: Vec<&Histogram> =
        stretches.iter().skip(1).filter(|stretch| stretch.total_count() > 0).collect();
    let (first, second) = used.split_at(used.len() / 2);
    if first.len() < MIN_STRETCHES {
        return None;
    }
    let outcomes: BTreeSet<&Outcome> = used.iter().flat_map(|stretch| stretch.counts.keys()).collect();
    let count_in = |stretch: &Histogram, outcome: &Outcome| stretch.counts.get(outcome).copied().unwrap_or(0);
    let rates = |half: &[&Histogram], outcome: &Outcome| -> Vec<f64> {
        half.iter().map(|stretch| count_in(stretch, outcome) as f64 / stretch.total_count() as f64).collect()
    };
    let rate = |half: &[&Histogram], outcome: &Outcome| {
        let total: u64 = half.iter().map(|stretch| stretch.total_count()).sum();
        Proportion::new(half.iter().map(|stretch| count_in(stretch, outcome)).sum(), total).rate()
    };
    let count = outcomes.len() as f64;
    let drifts = outcomes.into_iter().filter_map(|outcome| {
        let p = kolmogorov_smirnov(&rates(first, outcome), &rates(second, outcome))?.p;
        let (earlier, later) = (rate(first, outcome), rate(second, outcome));
        Some(Drift { outcome: outcome.clone(), earlier, later, p: (p * count).min(1.0) })
    });
    drifts.min_by(|left, right| left.p.total_cmp(&right.p))
}

/// Q(λ) = 2 Σ (−1)^(j−1) e^(−2 j² λ²), the tail of the Kolmogorov distribution.
fn kolmogorov_tail(lambda: f64) -> f64 {
    // For smaller λ the series converges too slowly, and Q(λ) is 1 to within the precision used.
    if lambda < 0.2 {
        return 1.0;
    }
    let term = |j: i32| (-2.0 * f64::from(j).powi(2) * lambda.powi(2)).exp();
    let sum: f64 = (1..=100).map(|j| if j % 2 == 1 { term(j) } else { -term(j) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Returns the x at which the regularized incomplete beta function I_x(a, b) is `probability`, by bisection.
///
/// The quantile function of statrs does not terminate for the parameters of a hundred million instances.
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Beyond twelve standard deviations from the mean the tails are negligible.
    let mean = a / (a + b);
    let deviation = (mean * (1.0 - mean) / (a + b + 1.0)).sqrt();
    let (below, above) = (mean - 12.0 * deviation, mean + 12.0 * deviation);
    if below > 0.0 && incomplete_beta(a, b, below) < probability {
        low = below;
    }
    if above < 1.0 && incomplete_beta(a, b, above) > probability {
        high = above;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 1e-12 * high {
            break;
        }
        if incomplete_beta(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularized incomplete beta function I_x(a, b) for 0 < x < 1, by its continued fraction (modified
/// Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function; it needs at most about √(max(a, b)) terms.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const PRECISION: f64 = 1e-13;
    const TERMS: u32 = 2_000_000;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    pub(super) fn assert_close(actual: f64, expected: f64, relative: f64) {
        assert!((actual - expected).abs() <= relative * expected.abs(), "{actual:e} is not {expected:e}");
    }

    /// P(X ≥ k) for X binomial (n, p), summed term by term.
    fn upper_tail(k: u64, n: u64, p: f64) -> f64 {
        (k..=n)
            .map(|i| {
                let (i, n) = (i as f64, n as f64);
                (ln_gamma(n + 1.0) - ln_gamma(i + 1.0) - ln_gamma(n - i + 1.0)
                    + i * p.ln()
                    + (n - i) * (-p).ln_1p())
                .exp()
            })
            .sum()
    }

    proptest! {
        /// The definition: at each end of the interval, the tail beyond the count has probability 2.5 %.
        #[test]
        fn interval_meets_its_definition(total in 1u64..400, share in 0.0f64..=1.0) {
            let count = (share * total as f64) as u64;
            let interval = Proportion::new(count, total).interval();
            if count > 0 {
                assert_close(upper_tail(count, total, interval.low), 0.025, 1e-6);
            }
            if count < total {
                assert_close(1.0 - upper_tail(count + 1, total, interval.high), 0.025, 1e-6);
            }
        }

        #[test]
        fn interval_holds_the_rate(count in 0u64..2_000_000_000, rest in 0u64..2_000_000_000) {
            let proportion = Proportion::new(count, count + rest);
            let interval = proportion.interval();
            prop_assert!(interval.low <= proportion.rate() && proportion.rate() <= interval.high);
            prop_assert!((0.0..=1.0).contains(&interval.low) && (0.0..=1.0).contains(&interval.high));
        }
    }

    /// Table values: 5 of 10, and 0 and 10 of 10 in closed form.
    #[test]
    fn known_intervals() {
        let half = Proportion::new(5, 10).interval();
        assert_close(half.low, 0.187_086, 1e-5);
        assert_close(half.high, 0.812_914, 1e-5);
        let none = Proportion::new(0, 10).interval();
        assert_eq!(none.low, 0.0);
        assert_close(none.high, 1.0 - 0.025_f64.powf(0.1), 1e-9);
        let all = Proportion::new(10, 10).interval();
        assert_close(all.low, 0.025_f64.powf(0.1), 1e-9);
        assert_eq!(all.high, 1.0);
    }

    /// Many trials: the interval approaches the normal one, and for one success the Poisson one.
    #[test]
    fn many_trials() {
        let (count, total) = (5_000_000_u64, 1_000_000_000_u64);
        let interval = Proportion::new(count, total).interval();
        let rate = count as f64 / total as f64;
        let deviation = (rate * (1.0 - rate) / total as f64).sqrt();
        assert_close(interval.low, rate - 1.959_964 * deviation, 1e-5);
        assert_close(interval.high, rate + 1.959_964 * deviation, 1e-5);
        let once = Proportion::new(1, total).interval();
        assert_close(once.low, 0.025_317_8e-9, 1e-5);
        assert_close(once.high, 5.571_643e-9, 1e-5);
    }

    #[test]
    fn without_trials_the_interval_is_full() {
        let proportion = Proportion::new(0, 0);
        assert_eq!(proportion.rate(), 0.0);
        assert_eq!(proportion.interval(), Interval { low: 0.0, high: 1.0 });
        assert_eq!(zero_count_bound(0), 1.0);
    }

    #[test]
    fn rule_of_three() {
        assert_close(zero_count_bound(1_000_000), 2.995_728e-6, 1e-6);
        assert_close(zero_count_bound(1), 0.95, 1e-12);
    }

    /// Example from Holm's paper: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
    #[test]
    fn many_tests_are_corrected() {
        let p = [0.01, 0.04, 0.03, 0.005];
        for (actual, expected) in holm(&p).into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert_close(actual, expected, 1e-12);
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        /// Holm rejects every hypothesis that Bonferroni rejects, and neither makes a p-value smaller.
        #[test]
        fn holm_lies_between(p in proptest::collection::vec(0.0f64..=1.0, 1..20)) {
            for (raw, holm) in p.iter().zip(holm(&p)) {
                let bonferroni = (raw * p.len() as f64).min(1.0);
                prop_assert!(*raw <= holm && holm <= bonferroni + 1e-12);
            }
        }
    }

    /// Table values of the chi-square distribution: 3.841 at 5 % with one degree of freedom, 5.991 with two.
    #[test]
    fn chi_square_matches_the_table() {
        assert_close(checked_gamma_ur(0.5, 0.5 * 3.841_459), 0.05, 1e-5);
        assert_close(checked_gamma_ur(1.0, 0.5 * 5.991_465), 0.05, 1e-5);
    }

    /// Returns stretches of a hundred instances whose second outcome has these counts.
    fn stretches(counts: impl Iterator<Item = u64>) -> Vec<Histogram> {
        counts
            .map(|count| {
                let mut histogram = Histogram::default();
                histogram.add_count(Outcome(vec![litmus::Value(0)]), 100 - count);
                histogram.add_count(Outcome(vec![litmus::Value(1)]), count);
                histogram
            })
            .collect()
    }

    #[test]
    fn a_rate_that_changes_in_the_middle_of_a_run_drifts() {
        let found =
            find_drift(&stretches((0..41).map(|n| if n < 21 { 10 + n % 3 } else { 30 + n % 3 }))).unwrap();
        assert!(found.p < 1e-6, "{found:?}");
        assert!((found.earlier - found.later).abs() > 0.15, "{found:?}");
    }

    #[test]
    fn a_rate_that_alternates_does_not_drift() {
        let found = find_drift(&stretches((0..41).map(|n| if n % 2 == 0 { 10 } else { 90 }))).unwrap();
        assert!(found.p > 0.5, "{found:?}");
        // A change in only the first stretch is the driver's warm-up.
        let found = find_drift(&stretches((0..41).map(|n| if n == 0 { 100 } else { 20 + n % 5 }))).unwrap();
        assert!(found.p > 0.5, "{found:?}");
    }

    #[test]
    fn too_few_stretches_have_no_drift() {
        assert_eq!(find_drift(&stretches(0..16)), None);
        assert!(find_drift(&stretches(0..17)).is_some());
        assert_eq!(find_drift(&[]), None);
    }

    /// Table values of the Kolmogorov distribution: 1.358 at 5 %, 1.628 at 1 %.
    #[test]
    fn kolmogorov_matches_the_table() {
        assert_close(kolmogorov_tail(1.358_1), 0.05, 1e-3);
        assert_close(kolmogorov_tail(1.627_6), 0.01, 1e-3);
        let low: Vec<f64> = (0..20).map(f64::from).collect();
        let high: Vec<f64> = low.iter().map(|value| value + 100.0).collect();
        let apart = kolmogorov_smirnov(&low, &high).unwrap();
        assert_eq!(apart.statistic, 1.0);
        assert!(apart.p < 1e-6);
        let same = kolmogorov_smirnov(&low, &low).unwrap();
        assert_eq!((same.statistic, same.p), (0.0, 1.0));
        let halves = kolmogorov_smirnov(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(halves.statistic, 0.5);
        assert_eq!(kolmogorov_smirnov(&[], &low), None);
        assert_eq!(kolmogorov_smirnov(&[f64::NAN], &low), None);
    }
}
