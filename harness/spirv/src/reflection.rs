//! Kernel arguments from clspv's reflection (`NonSemantic.ClspvReflection`): their names and places.

use std::collections::HashMap;

use rspirv::spirv::StorageClass;

use crate::enumerant::extended_instruction_number;
use crate::kernel_argument::{ArgumentPlace, KernelArgument, ReflectedIds};
use crate::module::{GlobalVariable, SpirvConstant, SpirvModule, SpirvType};

/// The operands before the information about the argument.
#[derive(Clone, Copy)]
enum ArgumentForm {
    Push,
    Block,
    Resource,
    Workgroup,
}

const ARGUMENT_FORMS: [(&str, ArgumentForm); 13] = [
    ("ArgumentPodPushConstant", ArgumentForm::Push),
    ("ArgumentPointerPushConstant", ArgumentForm::Push),
    ("ArgumentPodUniform", ArgumentForm::Block),
    ("ArgumentPodStorageBuffer", ArgumentForm::Block),
    ("ArgumentPointerUniform", ArgumentForm::Block),
    ("ArgumentStorageBuffer", ArgumentForm::Resource),
    ("ArgumentUniform", ArgumentForm::Resource),
    ("ArgumentSampledImage", ArgumentForm::Resource),
    ("ArgumentStorageImage", ArgumentForm::Resource),
    ("ArgumentSampler", ArgumentForm::Resource),
    ("ArgumentStorageTexelBuffer", ArgumentForm::Resource),
    ("ArgumentUniformTexelBuffer", ArgumentForm::Resource),
    ("ArgumentWorkgroup", ArgumentForm::Workgroup),
];

impl SpirvModule {
    /// Adds an instruction of the reflection. Arguments name the resources that have no name.
    pub(crate) fn add_reflection(
        &mut self,
        result: u32,
        number: u32,
        operands: &[u32],
        strings: &HashMap<u32, String>,
        known: &mut ReflectedIds,
    ) {
        let is =
            |name: &str| extended_instruction_number("NonSemantic.ClspvReflection", name) == Some(number);
        if is("Kernel") {
            known.functions.extend(operands.first().map(|function| (result, *function)));
        } else if is("ArgumentInfo") {
            let name = operands.first().and_then(|id| strings.get(id));
            known.names.extend(name.map(|name| (result, name.clone())));
        } else if let Some((_, form)) = ARGUMENT_FORMS.into_iter().find(|(name, _)| is(name)) {
            self.kernel_arguments.extend(self.kernel_argument(form, operands, known));
            if let Some(KernelArgument { name, place, .. }) = self.kernel_arguments.last().cloned() {
                for id in self.argument_variables(place) {
                    self.names.entry(id).or_insert_with(|| name.clone());
                }
            }
        } else {
            self.reflection.push((number, operands.to_vec()));
        }
    }

    /// Returns the variables that hold an argument alone.
    fn argument_variables(&self, place: ArgumentPlace) -> Vec<u32> {
        let has_length = |variable: &GlobalVariable, number: u32| match self.types.get(&variable.ty) {
            Some(SpirvType::Array { length, .. }) => {
                variable.class == StorageClass::Workgroup
                    && self.decorations_of(*length).specialization == Some(number)
            }
            _ => false,
        };
        match place {
            ArgumentPlace::Resource(at) => self.variables_at(at),
            ArgumentPlace::Workgroup(number) => {
                let variables = self.variables.iter().filter(|(_, variable)| has_length(variable, number));
                variables.map(|(id, _)| *id).collect()
            }
            ArgumentPlace::Push(..) | ArgumentPlace::Block(..) => Vec::new(),
        }
    }

    fn kernel_argument(
        &self,
        form: ArgumentForm,
        operands: &[u32],
        known: &ReflectedIds,
    ) -> Option<KernelArgument> {
        let [kernel, ordinal, rest @ ..] = operands else { return None };
        let number = |id: &u32| match self.constants.get(id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number),
            _ => None,
        };
        let numbers: Vec<u64> = rest.iter().map_while(number).collect();
        let at = |set: u64, binding: u64| (set as u32, binding as u32);
        let (place, count) = match (form, &numbers[..]) {
            (ArgumentForm::Push, [offset, size, ..]) => (ArgumentPlace::Push(*offset, *size), 2),
            (ArgumentForm::Block, [set, binding, offset, size, ..]) => {
                (ArgumentPlace::Block(at(*set, *binding), *offset, *size), 4)
            }
            (ArgumentForm::Resource, [set, binding, ..]) => (ArgumentPlace::Resource(at(*set, *binding)), 2),
            (ArgumentForm::Workgroup, [spec_id, _, ..]) => (ArgumentPlace::Workgroup(*spec_id as u32), 2),
            _ => return None,
        };
        let named = rest.get(count).and_then(|id| known.names.get(id)).cloned();
        let name = named.unwrap_or_else(|| format!("argument {}", number(ordinal).unwrap_or_default()));
        Some(KernelArgument { function: *known.functions.get(kernel)?, name, place })
    }
}
