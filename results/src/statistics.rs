//! How sure one may be of what was counted.
//!
//! All figures take what they count as independent: instances, or batches on a device that says that the instances of one
//! share choices. Scheduling makes neighbouring instances alike, so an interval is a lower bound of the true uncertainty.

pub mod rates;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use litmus::{Histogram, Outcome};
use statrs::function::gamma::{gamma_ur, ln_gamma};

/// Probability that an interval or bound is to hold with.
pub const CONFIDENCE: f64 = 0.95;

/// Successes among trials.
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
    /// `count` successes among `total` trials; more successes than trials count as `total`.
    pub fn new(count: u64, total: u64) -> Proportion {
        Proportion { count: count.min(total), total }
    }

    /// Relative frequency; 0 without trials.
    pub fn rate(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.count as f64 / self.total as f64 }
    }

    /// The two-sided Clopper–Pearson interval at [`CONFIDENCE`]: the probabilities under which neither so few nor so
    /// many successes would be a surprise. Without trials, everything from 0 to 1.
    pub fn interval(self) -> Interval {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let (count, total) = (self.count as f64, self.total as f64);
        let low = if self.count == 0 { 0.0 } else { beta_quantile(count, total - count + 1.0, tail) };
        let high = if self.count == self.total {
            1.0
        } else {
            beta_quantile(count + 1.0, total - count, 1.0 - tail)
        };
        Interval { low, high }
    }
}

impl Proportion {
    /// The anytime-valid interval at [`CONFIDENCE`]: with this probability it holds the true rate at *every* number of trials at
    /// once, so that it holds it too when somebody stops as soon as he likes what he sees, which [`Proportion::interval`]
    /// does not promise. It is wider for that.
    ///
    /// The rates p that a bet against them has not yet refuted: by Ville's inequality the capital of one who bets by a mixture of
    /// all rates, Beta(k + ½, n − k + ½) / (Beta(½, ½) pᵏ (1 − p)ⁿ⁻ᵏ), ever reaches 1/α with probability α at most. (H. Robbins,
    /// *Statistical methods related to the law of the iterated logarithm*, Ann. Math. Stat. 41, 1970; as a confidence sequence
    /// S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*,
    /// Ann. Stat. 49, 2021.)
    pub fn anytime_interval(self) -> Interval {
        if self.total == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let (count, total) = (self.count as f64, self.total as f64);
        let misses = total - count;
        let likelihood = |p: f64| {
            let hits = if count > 0.0 { count * p.ln() } else { 0.0 };
            hits + if misses > 0.0 { misses * (-p).ln_1p() } else { 0.0 }
        };
        let ln_beta = |a: f64, b: f64| ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        let refuted = ln_beta(count + 0.5, misses + 0.5) - ln_beta(0.5, 0.5) + (1.0 - CONFIDENCE).ln();
        // The likelihood rises up to the relative frequency and falls from there on.
        let end = |mut outside: f64, mut inside: f64| {
            for _ in 0..200 {
                let middle = 0.5 * (outside + inside);
                if (outside - inside).abs() <= 1e-12 * middle {
                    break;
                }
                if likelihood(middle) <= refuted { outside = middle } else { inside = middle }
            }
            outside
        };
        let low = if count > 0.0 { end(0.0, self.rate()) } else { 0.0 };
        let high = if misses > 0.0 { end(1.0, self.rate()) } else { 1.0 };
        Interval { low, high }
    }
}

/// The probability per instance that what was never seen among `total` instances stays below, at [`CONFIDENCE`]:
/// about 3 ÷ `total`, the rule of three. 1 without instances.
pub fn never_seen_bound(total: u64) -> f64 {
    if total == 0 { 1.0 } else { -((1.0 - CONFIDENCE).ln() / total as f64).exp_m1() }
}

/// The reproducibility score 1 − e^(−n): the chance of seeing again, in a run of the same length, what was seen `count`
/// times, if sightings are a Poisson process at the rate that was measured.
pub fn reproducibility(count: u64) -> f64 {
    -(-(count as f64)).exp_m1()
}

/// The rate of sightings a second that reproduces with probability `reproducibility` within `budget` seconds: the smallest
/// whole number of sightings whose [score](reproducibility()) reaches it, over the time. The field's ceiling-rate rule
/// chooses, for each test, the environment in which most devices reach it.
///
/// `None` where no rate is enough (a reproducibility of 1 or more) or there is no time.
pub fn ceiling_rate(reproducibility: f64, budget: f64) -> Option<f64> {
    if !(0.0..1.0).contains(&reproducibility) || budget.is_nan() || budget <= 0.0 {
        return None;
    }
    // A little less than the number that the logarithm gives: 1 − e^(−3) must need 3 sightings, not 4.
    let sightings = (-(-reproducibility).ln_1p() - 1e-9).ceil().max(0.0);
    Some(sightings / budget)
}

/// The probability that all of `tests` tests, each of this `reproducibility`, show again what they showed.
pub fn suite_reproducibility(reproducibility: f64, tests: u32) -> f64 {
    reproducibility.clamp(0.0, 1.0).powf(f64::from(tests))
}

/// What several devices show of one test in several environments, by the ceiling-rate rule: the index of the environment
/// in which most devices reach `ceiling` sightings a second; among equals the one whose smallest rate other than 0 is
/// largest, then the first. `rates` has a row an environment, a rate a device. `None` without environments.
pub fn merge_environments(rates: &[Vec<f64>], ceiling: f64) -> Option<usize> {
    let reached = |row: &Vec<f64>| row.iter().filter(|rate| **rate >= ceiling && **rate > 0.0).count();
    let smallest = |row: &Vec<f64>| {
        let seen = row.iter().copied().filter(|rate| *rate > 0.0);
        seen.fold(f64::INFINITY, f64::min)
    };
    let tie = |row: &Vec<f64>| if smallest(row).is_finite() { smallest(row) } else { 0.0 };
    let mut best: Option<usize> = None;
    for (index, row) in rates.iter().enumerate() {
        let better = best.and_then(|best| rates.get(best)).is_none_or(|best| {
            (reached(row), tie(row)).partial_cmp(&(reached(best), tie(best))) == Some(Ordering::Greater)
        });
        if better {
            best = Some(index);
        }
    }
    best
}

/// The p-values of many tests after Holm's correction, in their order: with those below α called significant, the chance
/// of a single false call among all of them is below α, however the tests depend on one another.
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

/// The p-values of many tests after Bonferroni's correction: simpler than [`holm`], and never smaller.
pub fn bonferroni(p_values: &[f64]) -> Vec<f64> {
    p_values.iter().map(|p| (p * p_values.len() as f64).min(1.0)).collect()
}

/// Fewer expected instances in a cell than this make the chi-square test unreliable.
const LEAST_EXPECTED: f64 = 5.0;

/// A statistic with the probability of one at least as large if nothing had changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significance {
    /// The statistic.
    pub statistic: f64,
    /// The p-value.
    pub p: f64,
}

/// The chi-square test of homogeneity: did all batches draw their outcomes from one distribution? `batches` has a row a
/// batch, a count an outcome. Outcomes too rare to be expected five times in every batch are counted together.
/// `None` where fewer than two batches or two outcomes are left.
pub fn chi_square_drift(batches: &[Vec<u64>]) -> Option<Significance> {
    let totals: Vec<f64> = batches.iter().map(|row| row.iter().sum::<u64>() as f64).collect();
    let used: Vec<usize> = (0..batches.len()).filter(|row| totals[*row] > 0.0).collect();
    let all: f64 = totals.iter().sum();
    let smallest = used.iter().map(|row| totals[*row]).fold(f64::INFINITY, f64::min);
    let outcomes = batches.iter().map(Vec::len).max().unwrap_or(0);
    let count = |row: usize, outcome: usize| batches[row].get(outcome).copied().unwrap_or(0) as f64;
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut rare = vec![0.0; batches.len()];
    for outcome in 0..outcomes {
        let column: Vec<f64> = (0..batches.len()).map(|row| count(row, outcome)).collect();
        if column.iter().sum::<f64>() * smallest / all >= LEAST_EXPECTED {
            columns.push(column);
        } else {
            rare.iter_mut().zip(&column).for_each(|(sum, count)| *sum += count);
        }
    }
    if rare.iter().sum::<f64>() * smallest / all >= LEAST_EXPECTED {
        columns.push(rare);
    }
    if used.len() < 2 || columns.len() < 2 {
        return None;
    }
    // What was too rare even together is left out of the rows as well.
    let kept = |row: usize| columns.iter().map(|column| column[row]).sum::<f64>();
    let all_kept: f64 = used.iter().map(|row| kept(*row)).sum();
    let statistic = columns
        .iter()
        .flat_map(|column| used.iter().map(move |row| (column, *row)))
        .map(|(column, row)| {
            let expected = kept(row) * column.iter().sum::<f64>() / all_kept;
            if expected > 0.0 { (column[row] - expected).powi(2) / expected } else { 0.0 }
        })
        .sum::<f64>();
    let freedom = ((used.len() - 1) * (columns.len() - 1)) as f64;
    Some(Significance { statistic, p: checked_gamma_ur(0.5 * freedom, 0.5 * statistic) })
}

/// The upper regularized incomplete gamma function; the whole at 0.
fn checked_gamma_ur(a: f64, x: f64) -> f64 {
    if x <= 0.0 { 1.0 } else { gamma_ur(a, x) }
}

/// The two-sample Kolmogorov–Smirnov test: do two samples, such as the rates of the batches of the first and of the second
/// half of a run, come from one distribution? The p-value is the asymptotic one with Stephens' correction, good from about
/// eight values a sample on. `None` where a sample is empty or holds something that is no number.
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

/// An outcome whose rate changed in the course of a run, if any did.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The outcome with the smallest p-value.
    pub outcome: Outcome,
    /// Its rate in the first half.
    pub earlier: f64,
    /// Its rate in the second half.
    pub later: f64,
    /// The p-value of its [two-sample test](kolmogorov_smirnov()) after Bonferroni's correction over all outcomes.
    pub p: f64,
}

/// Stretches of a half at least: the p-value is asymptotic.
const LEAST_STRETCHES: usize = 8;

/// Whether the rates of outcomes drifted: for each outcome, its rates in the stretches of the first half of a run against
/// those in the second. A stretch is one value however many instances it has, since instances that are near in time are
/// alike. The first stretch is left out: kernels are compiled and dispatches grow in it. `None` where there are too few.
pub fn drift(stretches: &[Histogram]) -> Option<Drift> {
    let used: Vec<&Histogram> = stretches.iter().skip(1).filter(|stretch| stretch.total() > 0).collect();
    let (first, second) = used.split_at(used.len() / 2);
    if first.len() < LEAST_STRETCHES {
        return None;
    }
    let outcomes: BTreeSet<&Outcome> = used.iter().flat_map(|stretch| stretch.counts.keys()).collect();
    let of = |stretch: &Histogram, outcome: &Outcome| stretch.counts.get(outcome).copied().unwrap_or(0);
    let rates = |half: &[&Histogram], outcome: &Outcome| -> Vec<f64> {
        half.iter().map(|stretch| of(stretch, outcome) as f64 / stretch.total() as f64).collect()
    };
    let rate = |half: &[&Histogram], outcome: &Outcome| {
        let total: u64 = half.iter().map(|stretch| stretch.total()).sum();
        Proportion::new(half.iter().map(|stretch| of(stretch, outcome)).sum(), total).rate()
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
    // The series alternates too long below this, where the tail is 1 to all digits that matter.
    if lambda < 0.2 {
        return 1.0;
    }
    let term = |j: i32| (-2.0 * f64::from(j).powi(2) * lambda.powi(2)).exp();
    let sum: f64 = (1..=100).map(|j| if j % 2 == 1 { term(j) } else { -term(j) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// The entropy in bits of the outcomes of a run: 0 where every instance shows the same, and larger the more the threads
/// interleave.
pub fn entropy(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / total);
    // Adding 0 turns the negative zero of a single outcome into a positive one.
    shares.map(|share| -share * share.log2()).sum::<f64>() + 0.0
}

/// The x at which the regularized incomplete beta function I_x(a, b) is `probability`, by bisection.
///
/// (The quantile of statrs does not end for the parameters that a hundred million instances give.)
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Around the mean the tails fall off so fast that twelve deviations hold all that matters.
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

/// The regularized incomplete beta function I_x(a, b) for 0 < x < 1, by its continued fraction (modified Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function. It needs about √(max(a, b)) terms at worst.
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
    fn close(actual: f64, expected: f64, relative: f64) {
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
        /// The definition: at the lower end so many successes have probability 2.5 %, at the upper end so few.
        #[test]
        fn interval_meets_its_definition(total in 1u64..400, share in 0.0f64..=1.0) {
            let count = (share * total as f64) as u64;
            let interval = Proportion::new(count, total).interval();
            if count > 0 {
                close(upper_tail(count, total, interval.low), 0.025, 1e-6);
            }
            if count < total {
                close(1.0 - upper_tail(count + 1, total, interval.high), 0.025, 1e-6);
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
        close(half.low, 0.187_086, 1e-5);
        close(half.high, 0.812_914, 1e-5);
        let none = Proportion::new(0, 10).interval();
        assert_eq!(none.low, 0.0);
        close(none.high, 1.0 - 0.025_f64.powf(0.1), 1e-9);
        let all = Proportion::new(10, 10).interval();
        close(all.low, 0.025_f64.powf(0.1), 1e-9);
        assert_eq!(all.high, 1.0);
    }

    /// Somebody stops a run as soon as the usual interval leaves out the true rate, or else at its end: the worst that
    /// stopping early can do. The usual interval is then wrong far more often than it says, the anytime-valid one is not.
    #[test]
    fn anytime_intervals_hold_when_users_stop_as_they_like() {
        const RUNS: u32 = 10_000;
        const LONGEST: u64 = 1_000;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for rate in [0.5, 0.1, 0.01] {
            let (mut usual, mut anytime) = (0, 0);
            for _ in 0..RUNS {
                let mut seen = Proportion::new(0, 0);
                let mut fooled = false;
                while seen.total < LONGEST && !fooled {
                    seen = Proportion::new(seen.count + u64::from(uniform() < rate), seen.total + 1);
                    // The normal interval is near the usual one and cheap; what stops is then asked in full.
                    let deviation = (rate * (1.0 - rate) / seen.total as f64).sqrt();
                    let suspect = seen.total >= 10 && (seen.rate() - rate).abs() > 1.9 * deviation;
                    fooled = suspect && !holds(seen.interval(), rate);
                }
                usual += u32::from(!fooled);
                anytime += u32::from(holds(seen.anytime_interval(), rate));
            }
            let share = |covered: u32| f64::from(covered) / f64::from(RUNS);
            assert!(share(anytime) >= CONFIDENCE, "{rate}: {}", share(anytime));
            assert!(share(usual) < 0.85, "{rate}: the usual interval held in {}", share(usual));
        }
    }

    fn holds(interval: Interval, rate: f64) -> bool {
        interval.low <= rate && rate <= interval.high
    }

    #[test]
    fn anytime_intervals_are_wider_and_narrow_with_trials() {
        for (count, total) in [(0, 10), (10, 10), (3, 17), (1, 1_000_000_000), (5_000_000, 1_000_000_000_000)]
        {
            let proportion = Proportion::new(count, total);
            let (usual, anytime) = (proportion.interval(), proportion.anytime_interval());
            assert!(anytime.low <= usual.low && usual.high <= anytime.high, "{count}: {anytime:?}");
            let width = anytime.high - anytime.low;
            assert!(width <= 4.0 * (usual.high - usual.low), "{count} of {total}: {anytime:?}, {usual:?}");
        }
        assert_eq!(Proportion::new(0, 0).anytime_interval(), Interval { low: 0.0, high: 1.0 });
        // Nothing seen in n trials: (1 - p)^n falls to 0.05 B(½, n + ½) / B(½, ½), which is about 0.05 / √(πn).
        let none = Proportion::new(0, 1_000_000).anytime_interval();
        close(none.high, 1.047_59e-5, 1e-4);
    }

    /// Many trials: the interval approaches the normal one, and one success the Poisson one.
    #[test]
    fn many_trials() {
        let (count, total) = (5_000_000_u64, 1_000_000_000_u64);
        let interval = Proportion::new(count, total).interval();
        let rate = count as f64 / total as f64;
        let deviation = (rate * (1.0 - rate) / total as f64).sqrt();
        close(interval.low, rate - 1.959_964 * deviation, 1e-5);
        close(interval.high, rate + 1.959_964 * deviation, 1e-5);
        let once = Proportion::new(1, total).interval();
        close(once.low, 0.025_317_8e-9, 1e-5);
        close(once.high, 5.571_643e-9, 1e-5);
    }

    #[test]
    fn nothing_tried_nothing_known() {
        let proportion = Proportion::new(0, 0);
        assert_eq!(proportion.rate(), 0.0);
        assert_eq!(proportion.interval(), Interval { low: 0.0, high: 1.0 });
        assert_eq!(never_seen_bound(0), 1.0);
    }

    #[test]
    fn rule_of_three() {
        close(never_seen_bound(1_000_000), 2.995_728e-6, 1e-6);
        close(never_seen_bound(1), 0.95, 1e-12);
    }

    #[test]
    fn reproducibility_saturates() {
        assert_eq!(reproducibility(0), 0.0);
        close(reproducibility(1), 0.632_120_6, 1e-6);
        close(reproducibility(12), 0.999_993_9, 1e-6);
        assert_eq!(reproducibility(u64::MAX), 1.0);
    }

    /// The table of the field: 1, 2, 3 sightings give 63.2, 86.5 and 95.0 %; 99.999 % needs 12; 64 s at 99.999 %.
    #[test]
    fn the_ceiling_rate_is_the_fields() {
        for (target, sightings) in [(0.632, 1.0), (0.86, 2.0), (0.95, 3.0), (0.99999, 12.0), (0.0, 0.0)] {
            assert_eq!(ceiling_rate(target, 1.0), Some(sightings), "{target}");
        }
        assert_eq!(ceiling_rate(1.0 - (-3.0_f64).exp(), 1.0), Some(3.0));
        close(ceiling_rate(0.99999, 64.0).unwrap(), 12.0 / 64.0, 1e-12);
        assert_eq!(ceiling_rate(1.0, 1.0), None);
        assert_eq!(ceiling_rate(0.5, 0.0), None);
        assert_eq!(ceiling_rate(f64::NAN, 1.0), None);
    }

    /// 20 tests at 95 % are 35.8 %, at 99.999 % they are 99.98 %.
    #[test]
    fn a_suite_is_less_sure_than_its_tests() {
        close(suite_reproducibility(0.95, 20), 0.358_486, 1e-5);
        close(suite_reproducibility(0.99999, 20), 0.999_8, 1e-6);
    }

    #[test]
    fn environments_are_merged_by_reach_then_by_their_weakest_device() {
        let reach_two = vec![5.0, 0.1, 9.0];
        let reach_one = vec![100.0, 0.0, 2.0];
        let weaker = vec![5.0, 0.01, 9.0];
        let merge = |rates: &[&Vec<f64>]| {
            merge_environments(&rates.iter().map(|row| (*row).clone()).collect::<Vec<_>>(), 3.0)
        };
        assert_eq!(merge(&[&reach_one, &reach_two]), Some(1));
        assert_eq!(merge(&[&weaker, &reach_two]), Some(1));
        assert_eq!(merge(&[&reach_two, &reach_two]), Some(0), "the first among equals");
        assert_eq!(merge_environments(&[vec![0.0, 0.0]], 0.0), Some(0));
        assert_eq!(merge_environments(&[], 1.0), None);
    }

    /// Holm's own example: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
    #[test]
    fn many_tests_are_corrected() {
        let p = [0.01, 0.04, 0.03, 0.005];
        for (actual, expected) in holm(&p).into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(actual, expected, 1e-12);
        }
        for (actual, expected) in bonferroni(&p).into_iter().zip([0.04, 0.16, 0.12, 0.02]) {
            close(actual, expected, 1e-12);
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        /// Holm rejects whatever Bonferroni does, and neither makes a p-value smaller.
        #[test]
        fn holm_lies_between(p in proptest::collection::vec(0.0f64..=1.0, 1..20)) {
            for ((raw, holm), bonferroni) in p.iter().zip(holm(&p)).zip(bonferroni(&p)) {
                prop_assert!(*raw <= holm && holm <= bonferroni + 1e-12);
            }
        }
    }

    /// Table values of the chi-square distribution: 3.841 at 5 % with one degree of freedom, 5.991 with two.
    #[test]
    fn chi_square_knows_the_table() {
        close(checked_gamma_ur(0.5, 0.5 * 3.841_459), 0.05, 1e-5);
        close(checked_gamma_ur(1.0, 0.5 * 5.991_465), 0.05, 1e-5);
        // A 2 × 2 table by hand: 10 20 / 20 10 has statistic 60 × (100 − 400)² / 30⁴ = 20 / 3.
        let found = chi_square_drift(&[vec![10, 20], vec![20, 10]]).unwrap();
        close(found.statistic, 20.0 / 3.0, 1e-12);
        close(found.p, 0.009_823, 1e-3);
    }

    /// Stretches whose second outcome has these counts among a hundred.
    fn stretches(counts: impl Iterator<Item = u64>) -> Vec<Histogram> {
        counts
            .map(|count| {
                let mut histogram = Histogram::default();
                histogram.add(Outcome(vec![litmus::Value(0)]), 100 - count);
                histogram.add(Outcome(vec![litmus::Value(1)]), count);
                histogram
            })
            .collect()
    }

    #[test]
    fn a_rate_that_changes_in_the_middle_of_a_run_drifts() {
        let found = drift(&stretches((0..41).map(|n| if n < 21 { 10 + n % 3 } else { 30 + n % 3 }))).unwrap();
        assert!(found.p < 1e-6, "{found:?}");
        assert!((found.earlier - found.later).abs() > 0.15, "{found:?}");
    }

    #[test]
    fn a_rate_that_jumps_to_and_fro_all_the_time_does_not() {
        let found = drift(&stretches((0..41).map(|n| if n % 2 == 0 { 10 } else { 90 }))).unwrap();
        assert!(found.p > 0.5, "{found:?}");
        // What happens in the first stretch alone is the driver's warm-up.
        let found = drift(&stretches((0..41).map(|n| if n == 0 { 100 } else { 20 + n % 5 }))).unwrap();
        assert!(found.p > 0.5, "{found:?}");
    }

    #[test]
    fn few_stretches_say_nothing() {
        assert_eq!(drift(&stretches(0..16)), None);
        assert!(drift(&stretches(0..17)).is_some());
        assert_eq!(drift(&[]), None);
    }

    #[test]
    fn batches_alike_do_not_drift() {
        let found = chi_square_drift(&[vec![500, 300], vec![1000, 600], vec![250, 150]]).unwrap();
        close(found.p, 1.0, 1e-12);
        assert!(chi_square_drift(&[vec![500, 300], vec![300, 500]]).unwrap().p < 1e-12);
        // Rare outcomes go together; what remains decides.
        let rare = chi_square_drift(&[vec![1000, 2, 1, 4], vec![1000, 1, 2, 4]]).unwrap();
        assert!(rare.p > 0.9, "{rare:?}");
        assert_eq!(chi_square_drift(&[vec![10, 10]]), None);
        assert_eq!(chi_square_drift(&[vec![10], vec![10]]), None);
        assert_eq!(chi_square_drift(&[vec![0, 0], vec![10, 10]]), None);
        assert_eq!(chi_square_drift(&[]), None);
    }

    /// Table values of the Kolmogorov distribution: 1.358 at 5 %, 1.628 at 1 %.
    #[test]
    fn kolmogorov_knows_the_table() {
        close(kolmogorov_tail(1.358_1), 0.05, 1e-3);
        close(kolmogorov_tail(1.627_6), 0.01, 1e-3);
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

    #[test]
    fn entropy_counts_bits() {
        assert_eq!(entropy(&[7]), 0.0);
        close(entropy(&[5, 5]), 1.0, 1e-12);
        close(entropy(&[1, 1, 1, 1, 0]), 2.0, 1e-12);
        assert_eq!(entropy(&[]), 0.0);
    }
}
