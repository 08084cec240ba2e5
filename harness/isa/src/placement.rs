//! Placements of workgroups and waves on compute units and shader arrays.

use crate::family::Generation;
use crate::question::{WavePlacement, Workgroup};

/// The maximum number of workgroups for which every placement is enumerated.
const MAX_EXHAUSTIVE_WORKGROUPS: usize = 4;

/// The caches in which an access can hit data that another wave can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelevantCaches {
    /// Caches of compute units, vector or scalar.
    pub units: bool,
    /// Caches of shader arrays.
    pub arrays: bool,
}

/// Returns every distinct assignment of workgroups to compute units and of units to shader arrays.
///
/// If a workgroup may be spread, also every assignment of its waves to two units.
///
/// If no cache of a compute unit matters, separate units subsume shared ones, since sharing a unit's queues
/// only removes orders. If no array cache matters, all arrays are equivalent.
///
/// With more than four workgroups, only these: all separate, in one array or in several; all together; and
/// each pair together.
pub(crate) fn enumerate_placements(
    generation: Generation,
    workgroups: &[Workgroup],
    relevant_caches: RelevantCaches,
) -> Vec<WavePlacement> {
    let count = workgroups.len();
    let separate_units: Vec<u8> = (0..count).map(|number| number.min(120) as u8).collect();
    let shared_unit = vec![0; count];
    let mut assignments: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if count <= MAX_EXHAUSTIVE_WORKGROUPS {
        let all_units = if relevant_caches.units { set_partitions(count) } else { vec![separate_units] };
        let all_arrays = if relevant_caches.arrays { set_partitions(count) } else { vec![shared_unit] };
        for units in all_units {
            for array_of in &all_arrays {
                let pairs = || units.iter().zip(array_of);
                let refined = pairs().all(|(unit, array)| {
                    pairs().all(|(other, other_array)| unit != other || array == other_array)
                });
                if refined {
                    assignments.push((units.clone(), array_of.clone()));
                }
            }
        }
    } else {
        assignments.push((separate_units.clone(), shared_unit.clone()));
        if relevant_caches.arrays {
            assignments.push((separate_units.clone(), separate_units.clone()));
        }
        if relevant_caches.units {
            assignments.push((shared_unit.clone(), shared_unit.clone()));
            for (second, first) in (1..count).flat_map(|second| (0..second).map(move |first| (second, first)))
            {
                let mut units = separate_units.clone();
                if let Some(assigned_unit) = units.get_mut(second) {
                    *assigned_unit = first as u8;
                }
                let array_of = if relevant_caches.arrays { units.clone() } else { shared_unit.clone() };
                assignments.push((units, array_of));
            }
        }
    }
    let wave_assignments = if generation.has_wgp_mode() {
        enumerate_wave_assignments(workgroups, relevant_caches)
    } else {
        vec![Vec::new()]
    };
    let mut placements: Vec<WavePlacement> = Vec::new();
    for (units, array_of) in &assignments {
        for halves in &wave_assignments {
            let placement = assign_units(workgroups, units, array_of, halves);
            if !placements.contains(&placement) {
                placements.push(placement);
            }
        }
    }
    placements
}

/// The maximum number of waves of spread workgroups for which every assignment to two units is enumerated.
const MAX_EXHAUSTIVE_WAVES: usize = 6;

/// Returns the assignments of waves to the first or second of two compute units, for each workgroup with
/// several waves.
///
/// With too many waves, only one unit and alternating units. If no cache of a compute unit matters, both
/// units are always used.
fn enumerate_wave_assignments(
    workgroups: &[Workgroup],
    relevant_caches: RelevantCaches,
) -> Vec<Vec<Vec<bool>>> {
    let several = || workgroups.iter().map(|workgroup| workgroup.waves.len()).filter(|waves| *waves > 1);
    let is_exhaustive = several().sum::<usize>() <= MAX_EXHAUSTIVE_WAVES;
    let mut all: Vec<Vec<Vec<bool>>> = vec![Vec::new()];
    for workgroup in workgroups {
        let waves = workgroup.waves.len();
        let choices: Vec<Vec<bool>> = match (waves, is_exhaustive) {
            (0 | 1, _) => vec![Vec::new()],
            (_, true) => {
                let ways =
                    (0..1_u32 << waves).map(|way| (0..waves).map(|wave| way >> wave & 1 == 1).collect());
                ways.filter(|way: &Vec<bool>| {
                    relevant_caches.units || way.contains(&true) && way.contains(&false)
                })
                .collect()
            }
            (_, false) => {
                let alternating = (0..waves).map(|wave| wave % 2 == 1).collect();
                let one = relevant_caches.units.then(|| vec![false; waves]);
                one.into_iter().chain([alternating]).collect()
            }
        };
        all = all
            .iter()
            .flat_map(|head| choices.iter().map(|way| [head.as_slice(), std::slice::from_ref(way)].concat()))
            .collect();
    }
    all
}

/// Assigns two compute units to each seat; the first wave determines which unit is the first.
fn assign_units(
    workgroups: &[Workgroup],
    units: &[u8],
    array_of: &[u8],
    halves: &[Vec<bool>],
) -> WavePlacement {
    let block_count = units.iter().copied().max().map_or(0, |most| usize::from(most) + 1);
    let mut placement = WavePlacement { units: Vec::new(), arrays: vec![0; 2 * block_count] };
    let mut swapped: Vec<Option<bool>> = vec![None; block_count];
    for (number, ((workgroup, unit), array)) in workgroups.iter().zip(units).zip(array_of).enumerate() {
        let first = 2 * usize::from(*unit);
        for half in placement.arrays.iter_mut().skip(first).take(2) {
            *half = *array;
        }
        let mut place_wave = |wave: usize| {
            let half = halves.get(number).and_then(|way| way.get(wave)).copied().unwrap_or(false);
            let swapped = swapped.get_mut(usize::from(*unit)).is_some_and(|known| *known.get_or_insert(half));
            (first + usize::from(half != swapped)) as u8
        };
        placement.units.push((0..workgroup.waves.len()).map(&mut place_wave).collect());
    }
    placement
}

/// Returns the partitions of `count` items as block numbers; blocks are numbered by their first items.
fn set_partitions(count: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|partial: Vec<u8>| {
                let blocks = partial.iter().copied().max().map_or(0, |most| most + 1);
                (0..=blocks).map(move |block| {
                    let mut longer = partial.clone();
                    longer.push(block);
                    longer
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_are_counted() {
        assert_eq!(set_partitions(4).len(), 15);
        let (all, units, none) = (
            RelevantCaches { units: true, arrays: true },
            RelevantCaches { units: true, arrays: false },
            RelevantCaches { units: false, arrays: false },
        );
        let workgroup = Workgroup { kernel: 0, dispatch: 0, id: 0, wave_size: 64, waves: vec![vec![0]] };
        let several = |count| vec![workgroup.clone(); count];
        assert_eq!(enumerate_placements(Generation::Gfx9, &several(3), units).len(), 5);
        assert_eq!(enumerate_placements(Generation::Gfx10, &several(2), all).len(), 3);
        assert_eq!(enumerate_placements(Generation::Gfx10, &several(3), all).len(), 12);
        assert_eq!(enumerate_placements(Generation::Gfx10, &several(3), none).len(), 1);
        assert_eq!(enumerate_placements(Generation::Gfx10, &several(6), all).len(), 18);
        let wide = Workgroup { waves: vec![vec![0], vec![0]], ..workgroup };
        assert_eq!(enumerate_placements(Generation::Gfx11, std::slice::from_ref(&wide), all).len(), 2);
        assert_eq!(enumerate_placements(Generation::Gfx11, std::slice::from_ref(&wide), none).len(), 1);
        let three = Workgroup { waves: vec![vec![0]; 3], ..wide.clone() };
        assert_eq!(enumerate_placements(Generation::Gfx11, std::slice::from_ref(&three), all).len(), 4);
        assert_eq!(enumerate_placements(Generation::Gfx11, std::slice::from_ref(&three), none).len(), 3);
        // Separate in one array or two, with the wide workgroup on one unit or two; and together, with the
        // single wave sharing a unit with both waves, one, or none.
        let beside = [wide.clone(), Workgroup { waves: vec![vec![0]], ..wide.clone() }];
        assert_eq!(enumerate_placements(Generation::Gfx11, &beside, all).len(), 2 + 2 + 4);
        let eight = Workgroup { waves: vec![vec![0]; 8], ..wide.clone() };
        assert_eq!(enumerate_placements(Generation::Gfx11, &[eight], all).len(), 2);
        assert_eq!(enumerate_placements(Generation::Gfx9, &[wide], units).len(), 1);
    }
}
