//! Coverage of the intervals of rates over parts, by simulation.
//!
//! The rate of a part is log-normal and drifts, as on software drivers (`docs/dev/coverage.md` has measurements). An
//! interval that treats instances as independent would contain the mean rate in few runs.

use results::statistics::Proportion;
use results::statistics::parts::PartCounts;

/// Instances of a part.
const INSTANCES: u64 = 100_000;

/// Returns the share of simulated runs whose interval contains the mean rate: by parts, and by instances.
fn simulate(rate: f64, deviation: f64, parts: usize) -> (f64, f64) {
    const RUNS: u32 = 1000;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let (mut by_parts, mut by_instances) = (0, 0);
    for _ in 0..RUNS {
        let counts: Vec<u64> = (0..parts)
            .map(|_| {
                let factor = (deviation * normal() - deviation * deviation / 2.0).exp();
                let expected = rate * factor * INSTANCES as f64;
                (expected + expected.sqrt() * normal()).max(0.0).round() as u64
            })
            .collect();
        let contains =
            |interval: results::statistics::Interval| interval.low <= rate && rate <= interval.high;
        let found = PartCounts::new(&counts, &vec![INSTANCES; parts]).and_then(|counts| counts.interval());
        by_parts += u32::from(found.is_some_and(contains));
        let instances = Proportion::new(counts.iter().sum(), INSTANCES * parts as u64);
        by_instances += u32::from(contains(instances.interval()));
    }
    (f64::from(by_parts) / f64::from(RUNS), f64::from(by_instances) / f64::from(RUNS))
}

#[test]
fn intervals_of_parts_cover_the_rate() {
    for (rate, deviation, parts) in
        [(0.03, 0.2, 6), (0.03, 0.5, 6), (0.001, 0.5, 12), (0.3, 0.3, 12), (0.03, 0.8, 12), (0.001, 0.0, 12)]
    {
        let (by_parts, by_instances) = simulate(rate, deviation, parts);
        assert!(by_parts >= 0.9, "{rate} {deviation} {parts}: {by_parts}");
        assert!(deviation == 0.0 || by_instances < 0.5, "{rate} {deviation} {parts}: {by_instances}");
    }
}
