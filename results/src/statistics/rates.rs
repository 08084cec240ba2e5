//! Tests whether an outcome's rate differs between two runs by more than chance.
//!
//! Rates of single runs differ by more than any model of one run predicts, so repeated runs are compared
//! ([`compare_runs`]): Welch's test of the logarithms of their rates, which vary by factors. Batches of the simulated
//! GPU are independent and are compared as a 2 × 2 table ([`RateComparison`]).
//!
//! Two series of runs also differ because the state of the machine changes in between. That inflation is
//! estimated from all comparisons of both, as genomic control does (B. Devlin, K. Roeder, *Genomic control for
//! association studies*, Biometrics 55, 1999). Most tests did not change, so the median of the statistics
//! gives the common inflation, and the ninth decile how unevenly it is spread. Each statistic is then judged
//! by the Student distribution that fits both.

use super::{Proportion, Significance, checked_gamma_ur, incomplete_beta};

/// The median of the chi-square distribution with one degree of freedom.
const CHI_SQUARE_MEDIAN: f64 = 0.454_936;
/// Smallest number of comparisons from which the scatter is estimated.
const MIN_COMPARISONS: usize = 10;
/// Up to this number of observations in both runs together, Fisher's exact test is used.
const MAX_EXACT_OBSERVATIONS: u64 = 50;
/// A run with a smaller expected count excludes the comparison from the estimate of the inflation.
const MIN_EXPECTED_COUNT: f64 = 5.0;

/// Smallest number of repeated runs that are compared.
pub const MIN_RUNS: usize = 3;
/// Smallest variance of the logarithm of a rate: runs with equal counts by chance are not infinitely certain.
const MIN_LOG_VARIANCE: f64 = 1e-4;

/// The comparison of the rates of one outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunComparison {
    /// Its significance if rates vary only within each side.
    pub significance: Significance,
    /// Both sides have enough observations for the estimate of the scatter.
    pub is_regular: bool,
}

/// Variance between series of runs, as a multiple of that between the runs of one series. Runs of one series follow
/// each other and share the state of the machine, so they vary less than runs at other times (docs/dev/coverage.md).
pub(super) const SERIES_VARIANCE: f64 = 3.0;

/// The distribution of the logarithms of the rates of a series of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRates {
    pub mean: f64,
    pub variance: f64,
    pub runs: f64,
}

impl LogRates {
    /// Estimates it from pairs of count and instances; `None` for fewer than [`MIN_RUNS`] runs with instances. Half an
    /// observation is added to each count, for runs without any.
    pub fn estimate(runs: &[(u64, u64)]) -> Option<LogRates> {
        let logs: Vec<f64> = runs
            .iter()
            .filter(|(_, instances)| *instances > 0)
            .map(|(count, instances)| ((*count as f64 + 0.5) / (*instances as f64 + 0.5)).ln())
            .collect();
        let runs = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / runs;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let variance = (squares / (runs - 1.0)).max(MIN_LOG_VARIANCE);
        (logs.len() >= MIN_RUNS).then_some(LogRates { mean, variance, runs })
    }

    /// Returns the variance of the mean, between series of this length.
    fn mean_variance(&self) -> f64 {
        self.variance * (1.0 / self.runs + SERIES_VARIANCE)
    }
}

/// Compares the rates of an outcome in two series of runs: pairs of count and instances, at least [`MIN_RUNS`] each.
///
/// The statistic is the one with the p-value of Welch's test under a chi-square distribution with one degree of
/// freedom.
pub fn compare_runs(old: &[(u64, u64)], new: &[(u64, u64)]) -> Option<RunComparison> {
    let (before, after) = (LogRates::estimate(old)?, LogRates::estimate(new)?);
    let (old_variance, new_variance) = (before.mean_variance(), after.mean_variance());
    let variance = old_variance + new_variance;
    let freedom = variance.powi(2)
        / (old_variance.powi(2) / (before.runs - 1.0) + new_variance.powi(2) / (after.runs - 1.0));
    let p = student_tail((after.mean - before.mean).powi(2) / variance, freedom);
    let mean_count =
        |runs: &[(u64, u64)]| runs.iter().map(|(count, _)| *count as f64).sum::<f64>() / runs.len() as f64;
    Some(RunComparison {
        significance: Significance { statistic: inverse_chi_square_tail(p), p },
        is_regular: mean_count(old).min(mean_count(new)) >= MIN_EXPECTED_COUNT,
    })
}

/// The counts of one outcome in two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateComparison {
    /// Observations in the first run.
    pub old_count: u64,
    /// Trials of the first run.
    pub old_total: u64,
    /// Observations in the second run.
    pub new_count: u64,
    /// Trials of the second run.
    pub new_total: u64,
}

impl RateComparison {
    /// Returns the statistic and its p-value under independence and no change.
    ///
    /// The statistic is chi-square distributed with one degree of freedom. It is a likelihood ratio (G); with
    /// few observations it is the value whose tail equals the p-value of Fisher's exact test. `None` if a run
    /// has no trials.
    pub fn compare(&self) -> Option<RunComparison> {
        let is_regular = self.is_regular();
        self.significance().map(|significance| RunComparison { significance, is_regular })
    }

    fn significance(&self) -> Option<Significance> {
        if self.old_total == 0 || self.new_total == 0 {
            return None;
        }
        let flipped = RateComparison {
            old_count: self.old_total.saturating_sub(self.old_count),
            new_count: self.new_total.saturating_sub(self.new_count),
            ..*self
        };
        let rarer = if self.rate_sum() <= flipped.rate_sum() { *self } else { flipped };
        if rarer.old_count.saturating_add(rarer.new_count) <= MAX_EXACT_OBSERVATIONS {
            let p = rarer.fisher_exact_p();
            return Some(Significance { statistic: inverse_chi_square_tail(p), p });
        }
        let statistic = self.likelihood_ratio();
        Some(Significance { statistic, p: chi_square_tail(statistic) })
    }

    fn rate_sum(&self) -> f64 {
        Proportion::new(self.old_count, self.old_total).rate()
            + Proportion::new(self.new_count, self.new_total).rate()
    }

    /// Returns true if expected counts are large enough in both runs for the chi-square approximation.
    fn is_regular(&self) -> bool {
        let (old, new) = (self.old_total as f64, self.new_total as f64);
        let share = (self.old_count as f64 + self.new_count as f64) / (old + new);
        old.min(new) * share.min(1.0 - share) >= MIN_EXPECTED_COUNT
    }

    fn likelihood_ratio(&self) -> f64 {
        let (old, new) = (self.old_total as f64, self.new_total as f64);
        let observed_total = self.old_count as f64 + self.new_count as f64;
        let unseen = old + new - observed_total;
        let cells = [
            (self.old_count as f64, old, observed_total),
            (self.new_count as f64, new, observed_total),
            (old - self.old_count as f64, old, unseen),
            (new - self.new_count as f64, new, unseen),
        ];
        let term = |(observed, row, column): (f64, f64, f64)| {
            if observed > 0.0 { observed * (observed * (old + new) / (row * column)).ln() } else { 0.0 }
        };
        (2.0 * cells.into_iter().map(term).sum::<f64>()).max(0.0)
    }

    /// The two-sided p-value of Fisher's exact test: the total probability of all tables at most as probable
    /// as this one.
    fn fisher_exact_p(&self) -> f64 {
        let observed_total = self.old_count + self.new_count;
        let falling = |total: u64, count: u64| -> f64 {
            (0..count).map(|index| (total as f64 - index as f64).max(0.0)).map(f64::ln).sum()
        };
        let choose = |k: u64| falling(observed_total, k) - falling(k, k);
        let both = self.old_total as f64 + self.new_total as f64;
        let all: f64 = (0..observed_total).map(|index| (both - index as f64).ln()).sum();
        let probability = |k: u64| {
            (choose(k) + falling(self.old_total, k) + falling(self.new_total, observed_total - k) - all).exp()
        };
        let observed_probability = probability(self.old_count);
        let sum: f64 =
            (0..=observed_total).map(probability).filter(|p| *p <= observed_probability * (1.0 + 1e-7)).sum();
        sum.min(1.0)
    }
}

/// The chi-square tail with one degree of freedom.
fn chi_square_tail(statistic: f64) -> f64 {
    checked_gamma_ur(0.5, 0.5 * statistic)
}

/// Inverts [`chi_square_tail`] by bisection.
fn inverse_chi_square_tail(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1400.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if chi_square_tail(middle) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The spread of statistics between two runs caused by scheduling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// Inflation factor of the statistics, at least 1.
    pub scale: f64,
    /// Degrees of freedom of the Student distribution for the deflated statistics' roots; fewer mean heavier
    /// tails. `None` for the normal distribution.
    pub freedom: Option<f64>,
}

/// Candidate degrees of freedom, in order of increasing tail weight.
const FREEDOMS: [f64; 8] = [30.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.0];
/// Up to this inflation, instances count as independent.
const MAX_INDEPENDENT_INFLATION: f64 = 1.5;

impl Scatter {
    /// The scatter of independent instances.
    pub const NONE: Scatter = Scatter { scale: 1.0, freedom: None };

    /// Estimates the scatter from comparisons; most must be of unchanged rates. Only comparisons with large
    /// expected counts are used. `None` if there are too few.
    pub fn estimate(comparisons: &[RunComparison]) -> Option<Scatter> {
        let mut statistics: Vec<f64> = comparisons
            .iter()
            .filter(|comparison| comparison.is_regular)
            .map(|comparison| comparison.significance.statistic)
            .collect();
        if statistics.len() < MIN_COMPARISONS {
            return None;
        }
        statistics.sort_by(f64::total_cmp);
        let median = *statistics.get(statistics.len() / 2)?;
        let decile = *statistics.get(statistics.len() * 9 / 10)?;
        if median <= MAX_INDEPENDENT_INFLATION * CHI_SQUARE_MEDIAN {
            return Some(Scatter::NONE);
        }
        // Choose the lightest tails that are at least as heavy as the observed ones.
        let tail_ratio = |freedom: f64| student_quantile(0.1, freedom) / student_quantile(0.5, freedom);
        let freedom =
            FREEDOMS.into_iter().find(|freedom| tail_ratio(*freedom) >= decile / median).unwrap_or(1.0);
        Some(Scatter { scale: (median / student_quantile(0.5, freedom)).max(1.0), freedom: Some(freedom) })
    }

    /// Returns the deflated statistic with its p-value under this scatter.
    pub fn deflate(&self, significance: Significance) -> Significance {
        let statistic = significance.statistic / self.scale;
        let p = match self.freedom {
            None => significance.p,
            Some(freedom) => student_tail(statistic, freedom),
        };
        Significance { statistic, p }
    }
}

/// The two-sided tail of the Student distribution, as a function of the squared variable.
fn student_tail(square: f64, freedom: f64) -> f64 {
    if square <= 0.0 { 1.0 } else { incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + square)) }
}

/// Returns the squared value that a Student variable exceeds with `probability`, by bisection on its
/// logarithm.
pub(super) fn student_quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (-20.0_f64, 60.0_f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if student_tail(middle.exp(), freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::assert_close;

    fn compare(old_count: u64, old_total: u64, new_count: u64, new_total: u64) -> RateComparison {
        RateComparison { old_count, old_total, new_count, new_total }
    }

    /// Fisher's tea experiment: 3 and 1 of 4 give 34/70; all correct gives 2/70.
    #[test]
    fn few_sightings_are_compared_exactly() {
        assert_close(compare(3, 4, 1, 4).significance().unwrap().p, 34.0 / 70.0, 1e-9);
        assert_close(compare(4, 4, 0, 4).significance().unwrap().p, 2.0 / 70.0, 1e-9);
        // Five observations against none in runs of equal length: 2 / 2⁵.
        assert_close(compare(5, 1_000_000_000, 0, 1_000_000_000).significance().unwrap().p, 2.0 / 32.0, 1e-6);
        assert_close(compare(1, 100, 0, 900).significance().unwrap().p, 0.1, 1e-9);
    }

    #[test]
    fn many_sightings_are_compared_by_likelihood() {
        // By hand: 2 Σ O ln (O ÷ E) of 600 400 / 500 500.
        let expected = 2.0
            * (600.0 * (600.0_f64 / 550.0).ln()
                + 400.0 * (400.0_f64 / 450.0).ln()
                + 500.0 * (500.0_f64 / 550.0).ln()
                + 500.0 * (500.0_f64 / 450.0).ln());
        let found = compare(600, 1000, 500, 1000).significance().unwrap();
        assert_close(found.statistic, expected, 1e-9);
        assert!(found.p < 1e-5 && found.p > 1e-6);
        assert_eq!(compare(500, 1000, 500, 1000).significance().unwrap().statistic, 0.0);
        assert_eq!(compare(0, 0, 5, 10).significance(), None);
    }

    #[test]
    fn statistics_and_tails_are_inverse() {
        for statistic in [0.1, 0.454_936, 3.841, 40.0, 300.0] {
            assert_close(inverse_chi_square_tail(chi_square_tail(statistic)), statistic, 1e-9);
        }
        assert_close(chi_square_tail(CHI_SQUARE_MEDIAN), 0.5, 1e-5);
    }

    /// Table values: 0.8165 and 2.9200 with 2 degrees of freedom, 0.7649 and 2.3534 with 3, 1 and 6.3138 with
    /// 1.
    #[test]
    fn student_matches_the_table() {
        for (freedom, median, decile) in
            [(2.0, 0.816_497, 2.919_986), (3.0, 0.764_892, 2.353_363), (1.0, 1.0, 6.313_752)]
        {
            assert_close(student_quantile(0.5, freedom).sqrt(), median, 1e-5);
            assert_close(student_quantile(0.1, freedom).sqrt(), decile, 1e-5);
        }
    }

    /// Rates that vary threefold from run to run: twice the rate is no change, a hundred times is one.
    #[test]
    fn runs_are_compared_by_their_spread() {
        let runs = |factor: u64| [1, 3, 2, 5, 1, 4].map(|count| (count * factor, 1_000_000_u64)).to_vec();
        let p = |old: u64, new: u64| compare_runs(&runs(old), &runs(new)).unwrap().significance.p;
        assert_close(p(1000, 1000), 1.0, 1e-9);
        assert!(p(1000, 2000) > 0.05 && p(10, 30_000) < 0.01, "{} {}", p(1000, 2000), p(10, 30_000));
        assert_eq!(compare_runs(&runs(1)[..2], &runs(1)), None, "too few");
        assert!(compare_runs(&[(0, 1000); 6], &[(0, 1000); 6]).unwrap().significance.p > 0.99);
    }

    #[test]
    fn shifts_of_every_rate_are_scatter() {
        // Every rate moves by about five deviations, so the cause is scheduling and not one test.
        let all: Vec<RunComparison> = (1..=30)
            .map(|i| compare(10_000 * i, 1_000_000, 10_000 * i + 700, 1_000_000).compare().unwrap())
            .collect();
        let scatter = Scatter::estimate(&all).unwrap();
        assert!(scatter.scale > 1.5, "{scatter:?}");
        let one = compare(10_000, 1_000_000, 500_000, 1_000_000).significance().unwrap();
        assert!(
            scatter.deflate(one).p < 1e-4,
            "what moves much further still stands out: {:?}",
            scatter.deflate(one)
        );
        assert!(scatter.deflate(all[3].significance).p > 0.05);
        assert_eq!(Scatter::estimate(&all[..9]), None);
        let same: Vec<RunComparison> =
            (1..=30).map(|i| compare(1000 * i, 1_000_000, 1000 * i, 1_000_000).compare().unwrap()).collect();
        assert_eq!(Scatter::estimate(&same), Some(Scatter::NONE));
    }

    /// Tests that scatter unevenly are judged by a distribution with heavier tails.
    #[test]
    fn uneven_scatter_has_heavier_tails() {
        let shifts = [100, 200, 300, 500, 900, 1500, 3000, 6000, 20_000, 90_000];
        let all: Vec<RunComparison> = shifts
            .iter()
            .cycle()
            .take(40)
            .map(|shift| compare(500_000, 1_000_000, 500_000 + shift, 1_000_000).compare().unwrap())
            .collect();
        let scatter = Scatter::estimate(&all).unwrap();
        assert_eq!(scatter.freedom, Some(1.0), "{scatter:?}");
        let p: Vec<f64> = all.iter().map(|c| scatter.deflate(c.significance).p).collect();
        assert!(crate::statistics::holm(&p).into_iter().all(|p| p > 0.05), "{p:?}");
    }
}
