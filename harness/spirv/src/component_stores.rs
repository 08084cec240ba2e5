//! Stores of components as stores of their vectors.
//!
//! WGSL ("Component Reference from Vector Memory View"): a write access to a component of a vector may access all
//! memory locations of that vector. The module by these rules loads the vector, inserts the component and stores the
//! vector, so that every engine reports stores of different components without an order.

use rspirv::spirv::{Op, StorageClass};

use crate::module::{SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvType};

/// A store of a component, with the access chain of its pointer.
struct ComponentStore {
    chain: SpirvInstruction,
    class: StorageClass,
    /// The type of the vector.
    vector: u32,
}

impl SpirvModule {
    /// Returns true if a component of a vector in shared memory is stored alone.
    pub fn has_component_stores(&self) -> bool {
        let is_one = |function: &SpirvFunction| {
            function.code.iter().any(|instruction| self.component_store(function, instruction).is_some())
        };
        self.functions.values().any(is_one)
    }

    /// Replaces each store of a component by a store of its vector.
    pub(crate) fn widen_component_stores(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        for function in functions.values_mut() {
            let mut code = Vec::with_capacity(function.code.len());
            for at in 0..function.code.len() {
                let instruction = function.code[at];
                match self.component_store(function, &instruction) {
                    Some(store) => self.append_wide_store(function, &mut code, instruction, &store),
                    None => code.push(instruction),
                }
            }
            let labels = code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::Label);
            function.labels = labels.map(|(at, label)| (label.result, at)).collect();
            function.code = code;
        }
        self.functions = functions;
    }

    fn component_store(
        &self,
        function: &SpirvFunction,
        instruction: &SpirvInstruction,
    ) -> Option<ComponentStore> {
        let pointer = *self.operands_of(instruction).first().filter(|_| instruction.op == Op::Store)?;
        let is_chain = |one: &&SpirvInstruction| {
            one.result == pointer && matches!(one.op, Op::AccessChain | Op::InBoundsAccessChain)
        };
        let chain = *function.code.iter().find(is_chain)?;
        let (base, indices) = self.operands_of(&chain).split_first()?;
        let (_, outer) = indices.split_last()?;
        let base_type = self.variable_types.get(base).or_else(|| function.types.get(base))?;
        let SpirvType::Pointer { class, pointee } = *self.types.get(base_type)? else { return None };
        let is_shared = matches!(class, StorageClass::StorageBuffer | StorageClass::Workgroup);
        let vector = outer.iter().try_fold(pointee, |ty, index| self.part_type(ty, *index))?;
        let is_vector = matches!(self.types.get(&vector), Some(SpirvType::Vector { .. }));
        (is_shared && is_vector).then_some(ComponentStore { chain, class, vector })
    }

    /// Returns the type of a part of a composite.
    fn part_type(&self, ty: u32, index: u32) -> Option<u32> {
        match self.types.get(&ty)? {
            SpirvType::Vector { element, .. }
            | SpirvType::Array { element, .. }
            | SpirvType::RuntimeArray { element } => Some(*element),
            SpirvType::Matrix { column, .. } => Some(*column),
            SpirvType::Struct { members } => match self.constants.get(&index)? {
                (_, SpirvConstant::Scalar(member)) => members.get(usize::try_from(*member).ok()?).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    fn append_wide_store(
        &mut self,
        function: &mut SpirvFunction,
        code: &mut Vec<SpirvInstruction>,
        store: SpirvInstruction,
        component: &ComponentStore,
    ) {
        let chain = self.operands_of(&component.chain).to_vec();
        let operands = self.operands_of(&store).to_vec();
        let ([base, .., index], [_, value, memory @ ..]) = (&chain[..], &operands[..]) else {
            return code.push(store);
        };
        let pointer_type = self.pointer_type(component.class, component.vector);
        let mut append = |op: Op, ty: u32, operands: &[u32]| {
            let result = if ty == 0 { 0 } else { self.new_id() };
            let ids = [ty, result].into_iter().filter(|id| *id != 0);
            let words: Vec<u32> = ids.chain(operands.iter().copied()).collect();
            self.words.push((words.len() as u32 + 1) << 16 | op as u32);
            self.words.extend(&words);
            let end = self.words.len() as u32;
            let operands = (end - operands.len() as u32, end);
            code.push(SpirvInstruction { op, ty, result, operands, ..store });
            if result != 0 {
                function.types.insert(result, ty);
            }
            result
        };
        let pointer = match &chain[..chain.len() - 1] {
            [_] => *base,
            outer => append(Op::AccessChain, pointer_type, outer),
        };
        let loaded = append(Op::Load, component.vector, &[pointer]);
        let changed = append(Op::VectorInsertDynamic, component.vector, &[loaded, *value, *index]);
        append(Op::Store, 0, &[&[pointer, changed], memory].concat());
    }

    /// Returns an id that the module does not use.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.words[3];
        self.words[3] += 1;
        id
    }

    /// Returns the type of pointers to a type, and declares it if there is none.
    fn pointer_type(&mut self, class: StorageClass, pointee: u32) -> u32 {
        let wanted = SpirvType::Pointer { class, pointee };
        let known = self.types.iter().find(|(_, ty)| **ty == wanted).map(|(id, _)| *id);
        known.unwrap_or_else(|| {
            let id = self.new_id();
            self.types.insert(id, wanted);
            id
        })
    }
}
