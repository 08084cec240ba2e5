//! The combinations of one path per thread, and their event structures.

use litmus::{Test, ThreadId};

use crate::PredictError;
use crate::path::{PathChoice, ThreadPath, enumerate_paths};
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
    for_each_combination(&paths, &|_| true, &mut |_, combination| {
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

/// Visits every included combination of one path per thread while `visit` returns true.
///
/// `is_included` may exclude all combinations that begin with some paths.
pub(crate) fn for_each_combination(
    all: &[Vec<ThreadPath>],
    is_included: &dyn Fn(&[PathChoice]) -> bool,
    visit: &mut impl FnMut(&[PathChoice], &[&ThreadPath]) -> Result<bool, PredictError>,
) -> Result<(), PredictError> {
    // The paths of the last threads are chosen; that of the others is the first or a later one.
    let mut taken = vec![PathChoice::From(0); all.len()];
    let mut open = all.len();
    let mut next = 0;
    loop {
        let mut included = None;
        if let Some(thread) = open.checked_sub(1) {
            included = (next..all[thread].len()).find(|path| {
                taken[thread] = PathChoice::Path(*path);
                is_included(&taken)
            });
        } else {
            let chosen = all.iter().zip(&taken);
            let combination: Vec<&ThreadPath> =
                chosen.filter_map(|(paths, taken)| paths.get(taken.first_path())).collect();
            if !visit(&taken, &combination)? {
                return Ok(());
            }
        }
        if included.is_some() {
            open -= 1;
            next = 0;
            continue;
        }
        // The thread whose path was chosen before tries its next one.
        if let Some(thread) = open.checked_sub(1) {
            taken[thread] = PathChoice::From(0);
        }
        let Some(before) = taken.get(open) else { return Ok(()) };
        next = before.first_path() + 1;
        open += 1;
    }
}
