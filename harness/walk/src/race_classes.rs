//! Races that lockstep execution or equal values would excuse, which Vulkan does not.

use spirv_reader::SourcePosition;

use super::report::{GridFinding, GridSpot};
use entry_point::{FindingCause, FindingKind};

/// Turns lockstep races into races if other invocations race on the same lines. Puts stores of one value last.
///
/// A race that only lockstep execution of a subgroup would order, or of equal stores, is reported separately. It adds
/// nothing if the same lines race without that assumption.
pub(super) fn classify_races(findings: &mut Vec<GridFinding>) {
    let lines = |found: &GridFinding| -> Vec<(u32, SourcePosition)> {
        let line = |spot: &GridSpot| match spot.line {
            0 => (0, spot.place),
            line => (line, SourcePosition::Module),
        };
        let mut all: Vec<_> = found.at.iter().map(line).collect();
        all.sort_unstable();
        all
    };
    let is_weak =
        |found: &GridFinding| found.kind == FindingKind::Lockstep || found.cause == FindingCause::EqualStores;
    let wider = findings.iter().filter(|found| found.kind.is_race() && !is_weak(found));
    let wider: Vec<Vec<(u32, SourcePosition)>> = wider.map(lines).collect();
    findings.retain(|found| !is_weak(found) || !wider.contains(&lines(found)));
    findings.sort_by_key(|found| found.cause == FindingCause::EqualStores);
    for found in findings.iter_mut().filter(|found| found.kind == FindingKind::Lockstep) {
        if lines(found).iter().any(|line| wider.iter().flatten().any(|known| known == line)) {
            (found.kind, found.cause) = (FindingKind::Race, FindingCause::Unordered);
        }
    }
}
