//! Mutual order of an atomic access with the writes on the paths of a test.

use litmus::{Access, Scope, Test};

use crate::conflict::have_mutual_scopes;
use crate::path::{StepAccess, StepKind, ThreadPath};

/// Returns true if an atomic access of a thread is mutually ordered with all writes of its storage.
pub(crate) fn is_mutually_ordered(
    test: &Test,
    (thread, scope): (usize, Scope),
    memory: &StepAccess,
    paths: &[Vec<ThreadPath>],
) -> bool {
    let all = paths.iter().enumerate().flat_map(|(writer, paths)| {
        paths.iter().flat_map(move |path| path.steps.iter().map(move |step| (writer, step)))
    });
    memory.extent.is_whole
        && all.into_iter().all(|(writer, step)| match &step.kind {
            StepKind::Write(other, _) | StepKind::Rmw(other, Some(_))
                if other.extent.storage == memory.extent.storage =>
            {
                let whole = other.location == memory.location && other.extent.is_whole && !step.cooperative;
                matches!(other.access, Access::Atomic { scope: by, .. }
                    if whole && have_mutual_scopes(test, (thread, scope), (writer, by)))
            }
            _ => true,
        })
}
