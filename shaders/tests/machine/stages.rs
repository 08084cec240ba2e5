//! The invocations of a kernel in each stage. Graphics stages repeat some invocations and add helpers. Only
//! one invocation per slot may run its threads.

use std::collections::BTreeMap;

use rspirv::spirv::Op;
use shaders::carrier::{Carrier, FIRST_CLAIM};
use shaders::{Binding, CompiledKernel};

use super::{Invocation, Program, State};

/// Returns the invocations of this many workgroups. Some slots are shaded two or three times, and some pixels
/// have a helper.
pub fn invocations(
    kernel: &CompiledKernel,
    program: &Program,
    workgroups: u32,
    subgroup_size: u32,
) -> Vec<Invocation> {
    let size = kernel.workgroup_size;
    let mut found = Vec::new();
    let mut shade = |workgroup: u32, local: u32, pixel: (u32, u32), stage: bool| {
        let invocation = |helper| Invocation {
            pixel,
            size,
            helper,
            ..program.invocation(workgroup, local, subgroup_size)
        };
        let draw = workgroup * 7 + local * 3;
        if matches!(kernel.carrier, Carrier::Fragment { .. }) && draw.is_multiple_of(4) {
            found.push(invocation(true));
        }
        let times = if stage { [1, 1, 2, 1, 3][draw as usize % 5] } else { 1 };
        found.extend((0..times).map(|_| invocation(false)));
    };
    for workgroup in 0..workgroups {
        match &kernel.carrier {
            Carrier::Compute | Carrier::Mesh | Carrier::Task { .. } => {
                (0..size).for_each(|local| shade(workgroup, local, (0, 0), false))
            }
            // Such a kernel is dispatched together with a kernel of fragments.
            Carrier::VertexWithFragments { .. } => {}
            Carrier::Vertex => (0..size).for_each(|local| shade(workgroup, local, (0, 0), true)),
            Carrier::Fragment { layout: cells, .. } => {
                let corner = (workgroup / cells.rows * cells.pitch.0, workgroup % cells.rows * cells.pitch.1);
                for local in 0..cells.size * cells.size {
                    let (x, y) = (local % cells.size, local / cells.size);
                    shade(workgroup, local, (corner.0 + x, corner.1 + y), true);
                }
            }
        }
    }
    found
}

/// Returns the invocation that ran each slot, in the order of slots, without its claims. Checks that repeated
/// invocations had no effect and were counted.
pub fn first_invocations(kernel: &CompiledKernel, all: Vec<Invocation>, claims: &[u32]) -> Vec<Invocation> {
    if kernel.variant.stage.has_workgroups() {
        return all;
    }
    let mut first_by_slot: BTreeMap<(u32, u32), Invocation> = BTreeMap::new();
    let mut repeated = 0;
    for mut invocation in all {
        assert_eq!(invocation.state, State::Ended);
        let place = (invocation.workgroup, invocation.local);
        let is_claim = |binding: u32| kernel.bindings[binding as usize] == Binding::Claims;
        let (claimed, touches): (Vec<_>, Vec<_>) =
            invocation.accesses.drain(..).partition(|touch| is_claim(touch.binding));
        if invocation.helper || invocation.local >= kernel.workgroup_size {
            assert!(claimed.is_empty() && touches.is_empty(), "helpers and surplus invocations must be idle");
            continue;
        }
        assert!(claimed.iter().all(|touch| touch.op == Op::AtomicIAdd));
        match claimed.first() {
            Some(claim) if claim.read == Some(0) => assert_eq!(claimed.len(), 1),
            Some(claim) => {
                assert!(claim.word >= FIRST_CLAIM as usize && claimed.len() == 2 && claimed[1].word == 0);
                assert!(touches.is_empty(), "a repeated invocation must have no effect");
                repeated += 1;
                continue;
            }
            // Stress workgroups have no claims.
            None => {}
        }
        invocation.accesses = touches;
        first_by_slot.entry(place).or_insert(invocation);
    }
    assert_eq!(claims[0], repeated, "repeated invocations are counted");
    first_by_slot.into_values().collect()
}
