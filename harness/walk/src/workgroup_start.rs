//! The initial state of workgroups and their invocations.

use rspirv::spirv::{BuiltIn, StorageClass};
use spirv_reader::{SpirvConstant, Stage};

use super::happens_before::ClassMap;
use super::state::{Interpreter, Invocation, PrivateInput, PrivateTemplate, WorkgroupState};
use entry_point::{InvocationId, Problem, launch, malformed, unsupported};

use super::access::part_pointer;
use super::memory::MemoryObject;
use super::slots::{Slots, gather_slots};
use super::value::{ConcretePointer, ConcreteValue};

/// Upper bound on the size of a workgroup variable.
const MAX_WORKGROUP_VARIABLE: usize = 1 << 22;
/// Upper bound on the size of a private variable.
const MAX_PRIVATE_VARIABLE: usize = 1 << 18;

impl Interpreter<'_> {
    /// Returns the initial state of a workgroup.
    pub fn start_workgroup(&mut self, index: u32) -> Result<Box<WorkgroupState>, Problem> {
        let setup = self.setup;
        let count: u32 = setup.local_size.iter().product();
        let workgroup = setup.workgroup_position(index);
        let mut state = self.spare_workgroup.take().unwrap_or_default();
        // Ended invocations keep the memory of their variables.
        state.invocations.resize_with(count as usize, Invocation::default);
        state.objects.clear();
        state.barrier_epochs = ClassMap::default();
        state.split_rounds.clear();
        for variable in &setup.workgroup_variables {
            state.objects.push(self.variable_object(*variable, Some(litmus::StorageClass::Workgroup))?);
        }
        // Computed once: private variables have equal initial values in all invocations.
        if self.private_templates.is_empty() {
            self.private_templates = setup
                .private_variables
                .iter()
                .map(|variable| self.private_template(*variable))
                .collect::<Result<_, _>>()?;
        }
        for local_index in 0..count {
            let [x, y, _] = setup.local_size;
            // Inverts the formula of `LocalInvocationIndex`: x varies fastest.
            let local = [local_index % x, local_index / x % y, local_index / x / y];
            let identity =
                InvocationId { workgroup, local, workgroup_index: index, local_index, stage: setup.stage };
            let invocation = &mut state.invocations[local_index as usize];
            invocation.restart(identity, setup.numbering());
            for template in &self.private_templates {
                let object = invocation.locals.push_stale();
                template.initialize_object(object);
                if let Some(input) = template.input {
                    self.assign_input(object, input, &identity)?;
                }
            }
            let frame = self.new_frame(setup.function, Slots::EMPTY, invocation.locals.len());
            invocation.frames.push(frame.ok_or_else(|| malformed("no such function"))?);
        }
        Ok(state)
    }

    /// Returns the initial object of a variable.
    fn variable_object(
        &self,
        variable: u32,
        class: Option<litmus::StorageClass>,
    ) -> Result<MemoryObject, Problem> {
        let program = self.program;
        let Some(declared) = program.module.variables.get(&variable) else {
            return Err(malformed("no such variable"));
        };
        let size = program.specialized.size_of(declared.ty)?;
        let most = if class.is_some() { MAX_WORKGROUP_VARIABLE } else { MAX_PRIVATE_VARIABLE };
        let bytes = usize::try_from(size).ok().filter(|size| *size <= most);
        let bytes = bytes.ok_or_else(|| unsupported(format!("a variable of {size} bytes")))?;
        let id = program.module.display_name(variable);
        let name = match (class, program.module.source_name_of_variable(variable, 0)) {
            (None, _) => String::new(),
            (Some(_), Some(_)) => id,
            // A number of the module is not a name, and distinguishes variables.
            (Some(_), None) => format!("workgroup memory {id}"),
        };
        let mut object = MemoryObject::uninitialized(variable, name, class, bytes);
        let initializer = program.module.constants.get(&declared.initializer);
        // An empty taint list means that every byte is defined; uninitialized objects start
        // tainted.
        if matches!(initializer, Some((_, SpirvConstant::Null))) {
            object.taint.clear();
        } else if declared.initializer != 0 {
            let slots = program.slots_of(declared.initializer);
            if let Some(value) = gather_slots(&[], &self.globals, slots) {
                self.fill_object(
                    &mut object,
                    &ConcretePointer::at_object_start(0, declared.ty),
                    declared.ty,
                    &value,
                )?;
            }
        }
        object.apply_annotations(self.setup.annotated_values.get(&variable));
        Ok(object)
    }

    /// Returns the template of a private variable.
    fn private_template(&self, variable: u32) -> Result<PrivateTemplate, Problem> {
        let MemoryObject { bytes, taint, .. } = self.variable_object(variable, None)?;
        let declared = self.program.module.variables.get(&variable);
        let declared = declared.filter(|declared| declared.class == StorageClass::Input);
        let decorations = self.program.module.decorations_of(variable);
        let (built_in, location) = (decorations.built_in, decorations.location);
        let input = declared.map(|declared| PrivateInput { ty: declared.ty, built_in, location });
        Ok(PrivateTemplate { variable, bytes, taint, input })
    }

    /// Writes the input of an invocation to its variable.
    fn assign_input(
        &self,
        object: &mut MemoryObject,
        PrivateInput { ty, built_in, location }: PrivateInput,
        identity: &InvocationId,
    ) -> Result<(), Problem> {
        let given = location.and_then(|location| self.setup.stage_inputs.get(&location));
        if let Some(given) = given.and_then(|given| {
            launch::invocation_share(given, object.bytes.len() as u64, identity.workgroup_index)
        }) {
            object.bytes.copy_from_slice(given);
            object.taint.clear();
            return Ok(());
        }
        let taint = |built_in| self.setup.launch_taint.built_in_taint(built_in);
        if let Some(built_in) = built_in.filter(|built_in| taint(*built_in) == [0; 3])
            && let Some(position) = self.setup.launch_shape().position(built_in, identity)
            && let Some((words, [])) = object.bytes.as_chunks_mut().0.split_at_mut_checked(3)
        {
            words.iter_mut().zip(position).for_each(|(word, number)| *word = number.to_le_bytes());
            object.taint.clear();
            return Ok(());
        }
        let value = self.built_in_value(built_in, ty, identity)?;
        self.fill_object(object, &ConcretePointer::at_object_start(0, ty), ty, &value)
    }

    /// Writes a value to an object that no invocation can access yet.
    pub(super) fn fill_object(
        &self,
        object: &mut MemoryObject,
        at: &ConcretePointer,
        ty: u32,
        value: &ConcreteValue,
    ) -> Result<(), Problem> {
        if let Some((_, bytes)) = self.scalar_layout(ty) {
            if let ConcreteValue::Bits(bits, taint) = value
                && object.contains_range(at.offset, bytes)
            {
                object.write_scalar(at.offset, bytes, *bits, *taint);
            }
            return Ok(());
        }
        if let (Some((_, bits, Some(_))), ConcreteValue::Composite(parts)) =
            (self.program.number_layout(ty), value)
        {
            let step = u64::from(bits.div_ceil(8));
            for (index, part) in (0..).zip(parts.iter()) {
                let offset = at.offset + step * index;
                if let ConcreteValue::Bits(bits, taint) = part
                    && object.contains_range(offset, step as u32)
                {
                    object.write_scalar(offset, step as u32, *bits, *taint);
                }
            }
            return Ok(());
        }
        let at = ConcretePointer { ty, ..*at };
        for index in 0..self.program.specialized.part_count(ty)? {
            let inner = part_pointer(self.program, &at, index as u64)?;
            self.fill_object(object, &inner, inner.ty, &self.extract_component(value, index)?)?;
        }
        Ok(())
    }

    /// Returns the value of a built-in input.
    fn built_in_value(
        &self,
        built_in: Option<BuiltIn>,
        ty: u32,
        identity: &InvocationId,
    ) -> Result<ConcreteValue, Problem> {
        // In later stages or with vertex input, the value exists but is unknown.
        let not_given = match self.setup.stage {
            Stage::Compute | Stage::Task => super::value::UNDEFINED,
            Stage::Vertex | Stage::Fragment | Stage::Mesh => super::value::OPAQUE,
        };
        let Some(built_in) = built_in else { return self.program.filled_value(ty, not_given) };
        let Some(components) = self.setup.launch_shape().built_in_components(built_in, identity) else {
            // A built-in of another entry point, or one that is not computed: the walk refuses what it decides.
            return self.program.filled_value(ty, super::value::OPAQUE);
        };
        let marks = self.setup.launch_taint.built_in_taint(built_in);
        let part = |(axis, number): (usize, &Option<u32>)| {
            let mark = marks.get(axis).copied().unwrap_or(0);
            number
                .map_or(ConcreteValue::Bits(0, not_given), |number| ConcreteValue::Bits(number.into(), mark))
        };
        match &components[..] {
            [] => self.program.filled_value(ty, not_given),
            [one] => Ok(part((0, one))),
            parts => Ok(ConcreteValue::from_components(parts.iter().enumerate().map(part))),
        }
    }
}
