//! Spin loop detection: finds iterations that leave the state unchanged.
//!
//! Such an iteration can be repeated any number of times without effect, so the path may end in it.

use std::rc::Rc;

use rspirv::spirv::Op;

use super::Executor;
use crate::state::{ActiveLoop, PathState, PrivateMemory, SymbolicFrame};
use crate::value::SymbolicValue;
use entry_point::layout::ObjectId;

impl Executor<'_> {
    /// Returns a boolean that decides whether the iteration changed the state, if it was known at the start.
    pub(super) fn undecided_truth(
        &mut self,
        state: &PathState,
        header: u32,
        phis: &[(u32, SymbolicValue)],
    ) -> Option<SymbolicValue> {
        let frame = state.frames.last()?;
        let iteration_start = frame.loops.iter().rfind(|active| active.header == header)?;
        let performed = state.performed_rmws.len().checked_sub(iteration_start.rmw_count)?;
        // The iteration has effects other than read-modify-writes, so it is not a spin loop.
        if state.effects != iteration_start.effects + performed as u32 {
            return None;
        }
        let is_open = |before: &SymbolicValue, current: &SymbolicValue| {
            matches!(state.resolve_value(current), SymbolicValue::Truth(_))
                && matches!(state.resolve_value(before), SymbolicValue::Known(_))
        };
        let of_phis = iteration_start.phis.iter().zip(phis.iter().map(|(_, value)| value));
        let of_memory = iteration_start.memory.iter().filter_map(|(place, (_, before))| {
            let (_, now) = state.memory.get(place)?;
            Some((place.0.variable, before, now))
        });
        let mut open = of_memory.filter(|(_, before, now)| is_open(before, now));
        if let Some((_, now)) = of_phis.into_iter().find(|(before, now)| is_open(before, now)) {
            return Some(now.clone());
        }
        let dead = self.context.dead_variables(frame.function, header)?;
        // A variable that the loop overwrites first does not carry a value to the next iteration.
        open.find(|(variable, ..)| !dead.contains(variable)).map(|(_, _, now)| now.clone())
    }

    /// Returns true if an iteration left the header's phis and private memory unchanged.
    ///
    /// Variables that are dead at the header are ignored.
    pub(super) fn is_state_unchanged(
        &mut self,
        state: &PathState,
        iteration_start: &ActiveLoop,
        values: &[SymbolicValue],
    ) -> bool {
        let ActiveLoop { header, phis, memory, .. } = iteration_start;
        let same = |one: &SymbolicValue, other: &SymbolicValue| {
            one == other || state.resolve_value(one) == state.resolve_value(other)
        };
        if phis.len() != values.len() || !phis.iter().zip(values).all(|(one, other)| same(one, other)) {
            return false;
        }
        let part = |of: &PrivateMemory, place: &(ObjectId, u64)| of.get(place).cloned();
        let differs = |place: &(ObjectId, u64)| match (part(memory, place), part(&state.memory, place)) {
            (Some((bytes, one)), Some((other_bytes, other))) => bytes != other_bytes || !same(&one, &other),
            (one, other) => one.is_some() || other.is_some(),
        };
        let mut changed: Vec<u32> = Vec::new();
        // Memory is copied on write, so that an equal pointer means that nothing was written.
        if !Rc::ptr_eq(memory, &state.memory) {
            let places = memory.keys().chain(state.memory.keys()).filter(|place| differs(place));
            changed.extend(places.map(|(object, _)| object.variable));
        }
        // Variables of returned calls no longer exist.
        let module = self.context.module();
        let declares = |frame: &SymbolicFrame, id: u32| {
            let code = module.functions.get(&frame.function).map_or(&[][..], |function| &function.code);
            code.iter().any(|instruction| instruction.op == Op::Variable && instruction.result == id)
        };
        let is_gone = |id: u32| !state.frames.iter().any(|frame| declares(frame, id));
        changed.retain(|id| module.variables.contains_key(id) || !is_gone(*id));
        let Some(frame) = state.frames.last().filter(|_| !changed.is_empty()) else { return true };
        let Some(dead) = self.context.dead_variables(frame.function, *header) else { return false };
        changed.iter().all(|variable| dead.contains(variable))
    }
}
