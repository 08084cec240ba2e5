//! Rates of outcomes over the parts of a run.
//!
//! The parts of a run are a cluster sample: instances of one part share memory and the state of the machine, and
//! parts are exchangeable. The interval of a rate is that of E. L. Korn and B. I. Graubard, *Confidence intervals
//! for proportions with small expected number of positive counts estimated from survey data*, Survey Methodology
//! 24, 1998: a Clopper–Pearson interval of an effective number of instances, which follows from the variance
//! between parts and is reduced by the uncertainty of that variance. The variance is the largest of those of
//! single parts and of groups of neighbours, since the state of the machine drifts.
//!
//! For whole runs, which vary by factors, the interval is the one in which another run of the build is expected: the
//! prediction interval of a log-normal rate, with the variance between series of runs.
//!
//! Counts of rare outcomes are modelled as a gamma mixture of Poisson variables, with the coefficient of variation
//! between parts. Bounds on outcomes that never occurred and the reproducibility follow from it.
//!
//! The figures hold for the population that the parts are drawn from. Parts of one run share a process and a few
//! seconds, so they describe this run; only whole runs describe a build.

use super::rates::{LogRates, SERIES_VARIANCE, student_quantile};
use super::{CONFIDENCE, Interval, clopper_pearson};

/// Smallest number of parts with a variance that means anything.
pub const MIN_PARTS: usize = 3;
/// The square of the 97.5 % quantile of the normal distribution.
const NORMAL_QUANTILE_SQUARED: f64 = 3.841_459;
/// Sizes of the groups of neighbouring parts whose variances are compared.
const GROUP_SIZES: [usize; 2] = [1, 2];

/// Counts of an outcome in each part, next to the instances of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartCounts {
    /// Pairs of count and instances, of parts with instances.
    parts: Vec<(u64, u64)>,
}

impl PartCounts {
    /// Combines counts and instances; `None` for fewer than [`MIN_PARTS`] parts with instances.
    pub fn new(counts: &[u64], instances: &[u64]) -> Option<PartCounts> {
        let parts: Vec<_> = counts.iter().copied().zip(instances.iter().copied()).collect();
        let parts: Vec<_> = parts.into_iter().filter(|(_, instances)| *instances > 0).collect();
        (counts.len() == instances.len() && parts.len() >= MIN_PARTS).then_some(PartCounts { parts })
    }

    fn count(&self) -> f64 {
        self.parts.iter().map(|(count, _)| *count as f64).sum()
    }

    fn instances(&self) -> f64 {
        self.parts.iter().map(|(_, instances)| *instances as f64).sum()
    }

    fn rate(&self) -> f64 {
        self.count() / self.instances()
    }

    /// Returns the variance of the rate over groups of parts (a ratio estimate), and the number of groups.
    fn rate_variance(&self, group_size: usize) -> (f64, f64) {
        let groups = (self.parts.len() / group_size).max(1) as f64;
        let rate = self.rate();
        let deviation = |group: &[(u64, u64)]| -> f64 {
            group.iter().map(|(count, instances)| *count as f64 - rate * *instances as f64).sum()
        };
        let squares: f64 =
            self.parts.chunks(group_size).map(|group| deviation(group) * deviation(group)).sum();
        (groups / (groups - 1.0).max(1.0) * squares / self.instances().powi(2), groups)
    }

    /// Returns the interval of the rate at [`CONFIDENCE`]; `None` for an outcome with count zero.
    pub fn interval(&self) -> Option<Interval> {
        let (count, instances) = (self.count(), self.instances());
        if count <= 0.0 {
            return None;
        }
        let rate = self.rate();
        let effective = GROUP_SIZES
            .into_iter()
            .map(|size| self.rate_variance(size))
            .filter(|(variance, groups)| *variance > 0.0 && *groups >= MIN_PARTS as f64)
            .map(|(variance, groups)| {
                let student = student_quantile(1.0 - CONFIDENCE, groups - 1.0);
                rate * (1.0 - rate) / variance * NORMAL_QUANTILE_SQUARED / student
            })
            .fold(instances, f64::min);
        Some(clopper_pearson(rate * effective, effective))
    }

    /// Returns the interval at [`CONFIDENCE`] of the rate of another run, if the parts are runs; `None` for an outcome
    /// with count zero.
    pub fn run_interval(&self) -> Option<Interval> {
        let LogRates { mean, variance, runs } =
            LogRates::estimate(&self.parts).filter(|_| self.count() > 0.0)?;
        let student = student_quantile(1.0 - CONFIDENCE, runs - 1.0);
        let width = (student * variance * (1.0 + SERIES_VARIANCE + 1.0 / runs)).sqrt();
        Some(Interval { low: (mean - width).exp(), high: (mean + width).exp().min(1.0) })
    }

    /// Returns the squared coefficient of variation between parts, without that of counting.
    fn squared_variation(&self) -> f64 {
        let (variance, parts) = self.rate_variance(1);
        let rate = self.rate();
        if rate <= 0.0 { 0.0 } else { (parts * (variance - rate / self.instances()) / rate.powi(2)).max(0.0) }
    }

    /// Returns the probability to observe the outcome again in a run of the same length.
    ///
    /// Without variation between parts it is 1 − e^(−n) for n observations, the score of Levine et al., *MC
    /// Mutants*, ASPLOS 2023.
    pub fn reproducibility(&self) -> f64 {
        1.0 - absence_probability(self.count(), self.parts.len() as f64, self.squared_variation())
    }
}

/// The probability that an outcome with this expected count in all `parts` never occurs.
pub(crate) fn absence_probability(expected: f64, parts: f64, squared_variation: f64) -> f64 {
    // The limit for no variation, where the power below has no precision.
    if squared_variation < 1e-6 {
        return (-expected).exp();
    }
    (-(parts / squared_variation) * (expected * squared_variation / parts).ln_1p()).exp()
}

/// Returns the upper bound at [`CONFIDENCE`] on the rate of an outcome that never occurred in parts with these
/// instances. It is assumed to vary between parts like the most variable of the `observed` outcomes.
pub fn zero_count_bound(instances: &[u64], observed: &[PartCounts]) -> Option<f64> {
    let all = PartCounts::new(&vec![0; instances.len()], instances)?;
    let variations = observed.iter().filter(|counts| counts.rate() <= 0.5).map(PartCounts::squared_variation);
    let variation = variations.fold(0.0, f64::max);
    let parts = all.parts.len() as f64;
    let log_absence = (1.0 - CONFIDENCE).ln();
    let expected = if variation < 1e-6 {
        -log_absence
    } else {
        (-log_absence * variation / parts).exp_m1() * parts / variation
    };
    Some((expected / all.instances()).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::assert_close;

    /// Parts that vary as binomial counts do have nearly the interval of independent instances.
    #[test]
    fn parts_that_vary_by_chance_have_the_usual_interval() {
        let counts = [90, 110, 95, 105, 112, 88, 101, 99, 91, 109, 107, 93];
        let found = PartCounts::new(&counts, &[1000; 12]).unwrap().interval().unwrap();
        let usual = clopper_pearson(1200.0, 12_000.0);
        assert!(found.low <= usual.low && usual.high <= found.high, "{found:?} {usual:?}");
        assert!(found.high - found.low < 1.5 * (usual.high - usual.low), "{found:?} {usual:?}");
    }

    /// By hand: logarithms 1 ± 1 and 1 have the standard deviation 1; Student's quantile with 2 degrees of freedom is
    /// 4.3027.
    #[test]
    fn another_run_is_expected_within_the_spread_of_runs() {
        let counts = [1.0_f64, 2.0, 0.0].map(|log| (1e6 * (log - 5.0).exp()).round() as u64);
        let found = PartCounts::new(&counts, &[1_000_000; 3]).unwrap().run_interval().unwrap();
        let width = 4.302_653 * (1.0 + SERIES_VARIANCE + 1.0 / 3.0_f64).sqrt();
        assert_close(found.low.ln(), -4.0 - width, 1e-3);
        assert_eq!(found.high, 1.0, "{found:?}");
        assert_eq!(PartCounts::new(&[0; 3], &[1000; 3]).unwrap().run_interval(), None);
    }

    #[test]
    fn parts_that_vary_widen_the_interval() {
        let counts = [1000, 4000, 2000, 8000, 500, 3000];
        let parts = PartCounts::new(&counts, &[100_000; 6]).unwrap();
        let found = parts.interval().unwrap();
        assert!(found.low < 0.015 && found.high > 0.06, "{found:?}");
        let same = PartCounts::new(&[300; 6], &[100_000; 6]).unwrap();
        assert_close(same.interval().unwrap().low, clopper_pearson(1800.0, 600_000.0).low, 1e-9);
        assert_eq!(PartCounts::new(&[1, 2], &[10, 10]), None, "too few");
        assert_eq!(PartCounts::new(&[1, 2, 3, 4], &[10, 10, 0, 0]), None, "too few with instances");
    }

    /// Without variation the bound is the rule of three; with variation c² the gamma mixture has no event with
    /// probability (1 + e c² ÷ K)^(−K ÷ c²).
    #[test]
    fn bounds_grow_with_the_variation() {
        let bound = |observed: &[PartCounts]| zero_count_bound(&[1000; 10], observed).unwrap();
        assert_close(bound(&[]), 20.0_f64.ln() / 10_000.0, 1e-9);
        let uneven = PartCounts::new(&[100, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[1000; 10]).unwrap();
        let variation = uneven.squared_variation();
        assert_close(variation, 9.9, 0.02);
        let expected = bound(std::slice::from_ref(&uneven)) * 10_000.0;
        assert_close((1.0 + expected * variation / 10.0).powf(-10.0 / variation), 0.05, 1e-9);
        assert_close(absence_probability(expected, 10.0, variation), 0.05, 1e-9);
        let even = PartCounts::new(&[10; 10], &[1000; 10]).unwrap();
        assert_close(even.reproducibility(), 1.0, 1e-12);
        assert_close(absence_probability(2.0, 10.0, 0.0), (-2.0_f64).exp(), 1e-12);
        assert!(uneven.reproducibility() < 0.995);
    }
}
