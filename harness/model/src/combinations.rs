//! The combinations of one path per thread, and their event structures.

use litmus::{Test, ThreadId};

use crate::PredictError;
use crate::path::{ThreadPath, enumerate_paths};
use crate::skeleton::{ExecutionSemantics, Skeleton, build_skeletons};
use crate::supported::check_supported;

/// Collects the event structures of a test.
pub(crate) fn collect_skeletons(
    test: &Test,
    semantic: ExecutionSemantics,
    unroll: u32,
) -> Result<Vec<Skeleton>, PredictError> {
    let mut all = Vec::new();
    for_each_skeleton(test, semantic, unroll, &mut |skeleton| {
        all.push(skeleton);
        Ok(true)
    })?;
    Ok(all)
}

pub(crate) fn for_each_skeleton(
    test: &Test,
    semantic: ExecutionSemantics,
    unroll: u32,
    visit: &mut impl FnMut(Skeleton) -> Result<bool, PredictError>,
) -> Result<(), PredictError> {
    let paths = enumerate_thread_paths(test, semantic, unroll)?;
    let observables = test.observables();
    for_each_combination(&paths, &mut |combination| {
        for skeleton in build_skeletons(test, &observables, combination, semantic)? {
            if !visit(skeleton)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Returns the paths of each thread.
pub(crate) fn enumerate_thread_paths(
    test: &Test,
    semantic: ExecutionSemantics,
    unroll: u32,
) -> Result<Vec<Vec<ThreadPath>>, PredictError> {
    check_supported(test, semantic)?;
    (0..test.threads.len())
        .map(|thread| enumerate_paths(test, ThreadId(thread as u16), unroll, semantic.is_shipped_vulkan))
        .collect()
}

/// Visits every combination of one path per thread while `visit` returns true; the path of the first thread changes most
/// often.
pub(crate) fn for_each_combination(
    all: &[Vec<ThreadPath>],
    visit: &mut impl FnMut(&[&ThreadPath]) -> Result<bool, PredictError>,
) -> Result<(), PredictError> {
    let mut taken = vec![0; all.len()];
    loop {
        let combination = all.iter().zip(&taken).map(|(paths, taken)| paths.get(*taken));
        let Some(combination) = combination.collect::<Option<Vec<&ThreadPath>>>() else { return Ok(()) };
        if !visit(&combination)? {
            return Ok(());
        }
        // Counts up like an odometer.
        let is_last = |thread: usize| taken[thread] + 1 == all[thread].len();
        let Some(next) = (0..all.len()).find(|thread| !is_last(*thread)) else { return Ok(()) };
        taken[..next].fill(0);
        taken[next] += 1;
    }
}
