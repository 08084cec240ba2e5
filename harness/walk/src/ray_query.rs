//! Ray queries (`SPV_KHR_ray_query`) without geometry.
//!
//! A ray hits nothing or one triangle ([`RayResults`]). If it hits, the first `OpRayQueryProceedKHR` returns true with the
//! triangle as candidate and the next one false; the triangle is committed with the end of the query. Every number that a
//! query returns is 0. All of it depends on the assumed input [`InputPlace::RayQueries`], unless an option gives the results.
//!
//! [`InputPlace::RayQueries`]: entry_point::input_place::InputPlace::RayQueries
//! [`RayResults`]: entry_point::inputs::RayResults

use spirv_reader::RayQueryFunction;

use super::program::DecodedInstruction;
use super::state::{Interpreter, InvocationCtx, RayQueries, RayQueryState};
use super::step::Step;
use super::value::ConcreteValue;

// Values of SPIR-V: types of committed intersections, and the operand that selects them.
const TRIANGLE_INTERSECTION: u64 = 1;
const GENERATED_INTERSECTION: u64 = 2;
const COMMITTED_INTERSECTION: u64 = 1;

impl Interpreter<'_> {
    /// Executes an instruction of a ray query and returns its result.
    pub(super) fn execute_ray_query(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        query: u32,
        function: RayQueryFunction,
    ) -> Step<ConcreteValue> {
        let pointer = self.pointer_of_id(ctx, query)?;
        let (results, taint) = self.setup.ray_queries;
        let intersection = match function {
            RayQueryFunction::IntersectionType { intersection } => self.bits_of_id(ctx, intersection)?.0,
            _ => 0,
        };
        let invocation = ctx.invocation_mut();
        let number = invocation.number;
        let RayQueries { rays, queries } = &mut invocation.ray_queries;
        let state = queries.entry((pointer.object, pointer.offset)).or_default();
        let result = match function {
            RayQueryFunction::Initialize => {
                let hits = results.hits(number, *rays);
                *rays += 1;
                let pending = if hits { TRIANGLE_INTERSECTION } else { 0 };
                *state = RayQueryState { has_candidate: hits, committed: 0, pending };
                self.notes.insert(format!(
                    "{} (`--rays`), with zeros as distances and indices",
                    results.describe()
                ));
                ConcreteValue::NoBits(0)
            }
            RayQueryFunction::Terminate => {
                *state = RayQueryState { has_candidate: false, pending: 0, ..*state };
                ConcreteValue::NoBits(0)
            }
            RayQueryFunction::ConfirmIntersection => {
                state.committed = TRIANGLE_INTERSECTION;
                ConcreteValue::NoBits(0)
            }
            RayQueryFunction::GenerateIntersection => {
                (state.committed, state.pending) = (GENERATED_INTERSECTION, GENERATED_INTERSECTION);
                ConcreteValue::NoBits(0)
            }
            RayQueryFunction::Proceed => {
                let candidate = std::mem::take(&mut state.has_candidate);
                if !candidate {
                    state.committed = state.committed.max(state.pending);
                }
                ConcreteValue::from_bool(candidate, taint)
            }
            RayQueryFunction::IntersectionType { .. } => {
                // A candidate is a triangle, whose number is 0.
                let number = if intersection == COMMITTED_INTERSECTION { state.committed } else { 0 };
                ConcreteValue::Bits(number, taint)
            }
            RayQueryFunction::Attribute => self.program.filled_value(inst.raw.ty, taint)?,
        };
        Ok(result)
    }
}
