//! What a turn of a loop leaves behind: whether the next one begins as it did.

use std::rc::Rc;

use rspirv::spirv::Op;

use super::Walk;
use crate::overwritten::overwritten;
use crate::state::{Frame, Loop, Memory, State};
use crate::value::{Object, Value};

impl Walk<'_> {
    /// A truth that decides whether a turn of a loop leaves all as it was: one that was known when the turn began.
    pub(super) fn undecided(&mut self, state: &State, header: u32, phis: &[(u32, Value)]) -> Option<Value> {
        let frame = state.frames.last()?;
        let began = frame.loops.iter().rfind(|active| active.header == header)?;
        let performed = state.performed.len().checked_sub(began.performed)?;
        if state.effects != began.effects + performed as u32 {
            return None;
        }
        let is_open = |before: &Value, now: &Value| {
            matches!(state.resolved(now), Value::Truth(_))
                && matches!(state.resolved(before), Value::Known(_))
        };
        let of_phis = began.phis.iter().zip(phis.iter().map(|(_, value)| value));
        let of_memory = began.memory.iter().filter_map(|(place, (_, before))| {
            let (_, now) = state.memory.get(place)?;
            Some((place.0.variable, before, now))
        });
        let mut open = of_memory.filter(|(_, before, now)| is_open(before, now));
        if let Some((_, now)) = of_phis.into_iter().find(|(before, now)| is_open(before, now)) {
            return Some(now.clone());
        }
        let (module, function) = (self.setting.module(), frame.function);
        let code = module.functions.get(&function)?;
        let known = self.overwritten.entry((function, header));
        let overwritten = known.or_insert_with(|| overwritten(module, code, header));
        open.find(|(variable, ..)| !overwritten.contains(variable)).map(|(_, _, now)| now.clone())
    }

    /// Whether a turn of a loop leaves the values of the header's phis and private memory as they were when it began, but for variables
    /// that the next turn writes before it reads them.
    pub(super) fn is_as_it_was(&mut self, state: &State, began: &Loop, values: &[Value]) -> bool {
        let Loop { header, phis, memory, .. } = began;
        let same = |one: &Value, other: &Value| one == other || state.resolved(one) == state.resolved(other);
        if phis.len() != values.len() || !phis.iter().zip(values).all(|(one, other)| same(one, other)) {
            return false;
        }
        let part = |of: &Memory, place: &(Object, u64)| of.get(place).cloned();
        let differs = |place: &(Object, u64)| match (part(memory, place), part(&state.memory, place)) {
            (Some((bytes, one)), Some((other_bytes, other))) => bytes != other_bytes || !same(&one, &other),
            (one, other) => one.is_some() || other.is_some(),
        };
        let mut changed: Vec<u32> = Vec::new();
        if !Rc::ptr_eq(memory, &state.memory) {
            let places = memory.keys().chain(state.memory.keys()).filter(|place| differs(place));
            changed.extend(places.map(|(object, _)| object.variable));
        }
        // Those of calls that came back are gone.
        let module = self.setting.module();
        let declares = |frame: &Frame, id: u32| {
            let code = module.functions.get(&frame.function).map_or(&[][..], |function| &function.code);
            code.iter().any(|one| one.op == Op::Variable && one.result == id)
        };
        let is_gone = |id: u32| !state.frames.iter().any(|frame| declares(frame, id));
        changed.retain(|id| module.variables.contains_key(id) || !is_gone(*id));
        let Some(frame) = state.frames.last().filter(|_| !changed.is_empty()) else { return true };
        let Some(function) = module.functions.get(&frame.function) else { return false };
        let known = self.overwritten.entry((frame.function, *header));
        let overwritten = known.or_insert_with(|| overwritten(module, function, *header));
        changed.iter().all(|variable| overwritten.contains(variable))
    }
}
