//! Accesses beyond the assumed size of a buffer or image.
//!
//! Such an access has no effect and is not checked for races. The report names the furthest one of each object, so that
//! the analysis can assume a larger size, or demand one.

use entry_point::FindingCause;
use spirv_reader::SpirvModule;

use super::report::{ExceededSize, GridFinding, RequiredSize};
use super::state::{ExceededObject, Interpreter, InvocationCtx, SiteFinding};
use super::value::{ConcretePointer, Taint};

impl RequiredSize {
    /// Returns a size that holds what both hold.
    fn union(self, other: RequiredSize) -> RequiredSize {
        match (self, other) {
            (RequiredSize::Bytes(one), RequiredSize::Bytes(other)) => RequiredSize::Bytes(one.max(other)),
            (RequiredSize::Texels(one), RequiredSize::Texels(other)) => {
                RequiredSize::Texels([0, 1, 2].map(|axis: usize| one[axis].max(other[axis])))
            }
            (one, _) => one,
        }
    }
}

impl Interpreter<'_> {
    /// Notes an access beyond the assumed size of a buffer.
    pub(super) fn note_exceeded_buffer(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        bytes: u32,
    ) {
        let Some(object) = self.object_mut(ctx, pointer.object) else { return };
        let (assumed, name) = (object.bytes.len(), object.name.clone());
        let first = pointer.offset;
        let message =
            format!("an access at byte {first} of `{name}`, beyond its assumed size of {assumed} bytes");
        let required = RequiredSize::Bytes(first.saturating_add(bytes.into()));
        self.note_exceeded(ctx, pointer.object, required, name, message);
    }

    /// Notes an access beyond the assumed size of an image that invocations may write.
    ///
    /// A coordinate that is relative to the size exceeds every size, without an effect.
    pub(super) fn note_exceeded_image(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        number: u32,
        position: [u64; 3],
        taint: Taint,
    ) {
        let Some(image) = self.object_mut(ctx, number) else { return };
        let is_checked = image.class.is_some() && !image.has_known_length && image.length_taint & taint == 0;
        let is_negative = |coordinate: &u64| *coordinate > i32::MAX as u64;
        let (Some(texels), true) = (image.texels, is_checked) else { return };
        if position.iter().any(is_negative) {
            return;
        }
        let name = image.name.clone();
        let [x, y, z] = texels.size;
        let at: Vec<String> = position.iter().take(texels.axes).map(u64::to_string).collect();
        let at = at.join(",");
        let message = format!("an access to `{name}[{at}]`, beyond its assumed size of {x}x{y}x{z}");
        let required = [0, 1, 2].map(|axis: usize| texels.size[axis].max(position[axis] as u32 + 1));
        self.note_exceeded(ctx, number, RequiredSize::Texels(required), name, message);
    }

    fn note_exceeded(
        &mut self,
        ctx: &InvocationCtx<'_>,
        number: u32,
        required: RequiredSize,
        element: String,
        message: String,
    ) {
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let at = vec![(self.current_site(invocation), invocation.identity, None)];
        let cause = FindingCause::BeyondAssumedSize;
        let found = SiteFinding { cause, element, message, at, inputs: 0 };
        let known = self.exceeded.entry(number).or_insert(ExceededObject { required, found });
        known.required = known.required.union(required);
    }

    /// Adds the objects with an assumed size that this schedule exceeds.
    pub(super) fn add_exceeded(&self, module: &SpirvModule, all: &mut Vec<ExceededSize>) {
        for (number, ExceededObject { required, found }) in &self.exceeded {
            let Some(object) = self.objects.get(*number as usize) else { continue };
            let at = module.descriptor_of(object.variable);
            match all.iter_mut().find(|known| (known.at, &known.name) == (at, &object.name)) {
                Some(known) => known.required = known.required.union(*required),
                None => {
                    let spots = self.grid_spots(found);
                    let finding = GridFinding::new(found.cause, found.message.clone(), spots);
                    let finding = GridFinding { element: found.element.clone(), ..finding };
                    let name = object.name.clone();
                    all.push(ExceededSize { name, at, required: *required, finding });
                }
            }
        }
    }
}
