//! Inputs of a dispatch that are none of the shader that they are given to: a slip of the hand asks another question than was meant.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rspirv::spirv::{Op, StorageClass};

use crate::error::{Place, Problem, Refusal};
use crate::inputs::AddressPlace;
use crate::layout::Specialized;
use crate::lift::Options;
use crate::module::{Module, Type};

/// What stands at bindings that inputs are given for, in words.
const BUFFER: &str = "a buffer";
const IMAGE: &str = "an image";
const SAMPLER: &str = "a sampler";
const BOTH: &str = "an image with a sampler";

impl Module {
    /// What a case file gives and belongs to nothing that the module declares, each in words: a case may have all that a program binds,
    /// and compilers leave out what a shader does not use.
    ///
    /// # Errors
    /// What was given by hand and belongs to nothing, and what is given for something else than stands there.
    pub fn foreign(&self, options: &Options) -> Result<Vec<String>, Refusal> {
        let spare = options.of_case.as_deref().map(|case| self.absent(case)).unwrap_or_default();
        let mut wrong = self.absent(options);
        wrong.retain(|what| !spare.contains(what));
        wrong.extend(self.misfits(options));
        wrong.extend(self.addresses_of_nothing(options).map_err(|problem| problem.at(Place::Module))?);
        match wrong.is_empty() {
            true => Ok(spare),
            false => Err(Problem::Input(format!("it is given {}", wrong.join(", and "))).at(Place::Module)),
        }
    }

    /// What stands at each binding.
    fn bindings(&self) -> BTreeMap<(u32, u32), BTreeSet<&'static str>> {
        let mut all: BTreeMap<(u32, u32), BTreeSet<&'static str>> = BTreeMap::new();
        for (id, variable) in &self.variables {
            let own = self.decorations(*id);
            let Some(binding) = own.binding else { continue };
            let mut ty = variable.ty;
            while let Some(Type::Array { element, .. } | Type::RuntimeArray { element }) = self.types.get(&ty)
            {
                ty = *element;
            }
            let what = match self.types.get(&ty) {
                Some(Type::Handle(Op::TypeImage)) => IMAGE,
                Some(Type::Handle(Op::TypeSampledImage)) => BOTH,
                Some(Type::Handle(Op::TypeSampler)) => SAMPLER,
                Some(Type::Handle(_)) => "no buffer, image or sampler",
                _ => BUFFER,
            };
            all.entry((own.set.unwrap_or(0), binding)).or_default().insert(what);
        }
        all
    }

    /// What inputs say of bindings.
    fn given_at(options: &Options) -> impl Iterator<Item = (&'static str, (u32, u32))> {
        let buffers = options.buffers.keys().map(|place| (BUFFER, *place));
        let images = options.images.keys().map(|place| (IMAGE, *place));
        buffers.chain(images).chain(options.samplers.keys().map(|place| (SAMPLER, *place)))
    }

    /// What is given for what the module does not have.
    fn absent(&self, options: &Options) -> Vec<String> {
        let bindings = self.bindings();
        let constants: BTreeSet<u32> =
            self.decorations.values().filter_map(|own| own.specialization).collect();
        let has = |all: Vec<String>| match all.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", all.join(", ")),
        };
        let places = || has(bindings.keys().map(|(set, binding)| format!("{set}.{binding}")).collect());
        let mut absent: Vec<String> = Self::given_at(options)
            .filter(|(_, place)| !bindings.contains_key(place))
            .map(|(what, (set, binding))| {
                format!("{what} for {set}.{binding}, which it does not have ({})", places())
            })
            .collect();
        let mut unknown: Vec<&u32> =
            options.specialization.keys().filter(|id| !constants.contains(id)).collect();
        unknown.sort_unstable();
        let known = || has(constants.iter().map(u32::to_string).collect());
        absent.extend(
            unknown
                .into_iter()
                .map(|id| format!("specialization constant {id}, which it does not have ({})", known())),
        );
        let has_push = self.variables.values().any(|variable| variable.class == StorageClass::PushConstant);
        if !options.push.is_empty() && !has_push {
            absent.push("push constants, of which it has none".to_owned());
        }
        absent
    }

    /// What is given for bindings at which something else stands.
    fn misfits(&self, options: &Options) -> Vec<String> {
        let bindings = self.bindings();
        let misfit = |(what, place): (&'static str, (u32, u32))| {
            let there = bindings.get(&place)?;
            let fits = there.contains(what) || what != BUFFER && there.contains(BOTH);
            let there: Vec<&str> = there.iter().copied().collect();
            (!fits).then(|| format!("{what} for {}.{}, which is {}", place.0, place.1, there.join(" and ")))
        };
        Self::given_at(options).filter_map(misfit).collect()
    }

    /// Addresses at places that there are not.
    fn addresses_of_nothing(&self, options: &Options) -> Result<Vec<String>, Problem> {
        if options.addresses.is_empty() {
            return Ok(Vec::new());
        }
        let specialized = Specialized::new(self, &options.specialization, &HashMap::new(), None)?;
        let somewhere =
            |at: &AddressPlace| self.variables.keys().any(|id| offset_in(&specialized, *id, at).is_some());
        let nowhere = options.addresses.iter().filter(|address| !somewhere(&address.at));
        Ok(nowhere.map(|address| format!("an address at {}, where it has nothing", address.at)).collect())
    }
}

/// Where in a variable a place is; `None` where it is in another one.
pub(crate) fn offset_in(specialized: &Specialized<'_>, variable: u32, at: &AddressPlace) -> Option<u64> {
    let module = specialized.module;
    let declared = module.variables.get(&variable)?;
    let decorations = module.decorations(variable);
    match at {
        AddressPlace::Push(offset) => (declared.class == StorageClass::PushConstant).then_some(*offset),
        AddressPlace::Buffer((set, binding), offset) => {
            ((decorations.set, decorations.binding) == (Some(*set), Some(*binding))).then_some(*offset)
        }
        AddressPlace::Member(path) => {
            let block = matches!(
                declared.class,
                StorageClass::PushConstant | StorageClass::StorageBuffer | StorageClass::Uniform
            );
            // Members of a block without a name of its own go by its type's, or by theirs alone.
            let names = [module.name(variable), module.name(declared.ty)];
            let behind = names.iter().find_map(|name| path.strip_prefix(name.as_str())?.strip_prefix('.'));
            block.then(|| member(specialized, declared.ty, behind.unwrap_or(path)))?
        }
    }
}

/// The offset of a path of members and elements, such as `a.b[2].c`, in a type.
fn member(specialized: &Specialized<'_>, mut ty: u32, path: &str) -> Option<u64> {
    let mut offset = 0_u64;
    for word in path.split('.') {
        let (name, elements) = word.split_at(word.find('[').unwrap_or(word.len()));
        let mut steps = vec![specialized.module.member_of(ty, name)?];
        for element in elements.split_terminator(']') {
            steps.push(element.strip_prefix('[')?.parse().ok()?);
        }
        for step in steps {
            let part = specialized.part_of(ty, step).ok()?;
            (ty, offset) = (part.ty, offset.checked_add(part.offset)?);
        }
    }
    Some(offset)
}
