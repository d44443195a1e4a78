//! What the headers declare, sorted into functions, versions of functions, errors and types.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use syn::{FnArg, ForeignItem, GenericArgument, Item, Pat, PathArguments, ReturnType, Type, UseTree};

/// The parameters of a function, in order, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub parameters: Vec<(String, Type)>,
    pub result: Type,
}

/// One `PFN_cuMemcpyHtoD_v7000_ptds`: a function as it was first published in a version of CUDA.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    pub base: String,
    pub since: u32,
    pub per_thread: bool,
    pub signature: Signature,
}

/// The driver's surface in one mode of the headers.
pub struct Surface {
    pub functions: BTreeMap<String, Signature>,
    pub published: Vec<Published>,
    /// Name and value of every `CUresult`, in the header's order.
    pub errors: Vec<(String, u32)>,
    /// Types and constants, in the header's order.
    pub types: Vec<Item>,
    aliases: BTreeMap<String, Type>,
}

impl Surface {
    pub fn new(file: syn::File) -> Result<Surface> {
        let mut surface = Surface {
            functions: BTreeMap::new(),
            published: Vec::new(),
            errors: Vec::new(),
            types: Vec::new(),
            aliases: BTreeMap::new(),
        };
        for item in file.items {
            surface.add(item)?;
        }
        Ok(surface)
    }

    fn add(&mut self, item: Item) -> Result<()> {
        match item {
            Item::ForeignMod(block) => {
                for item in block.items {
                    self.add_function(item)?;
                }
            }
            Item::Type(alias) if alias.ident.to_string().starts_with("PFN_") => {
                let published = published(&alias.ident.to_string(), &alias.ty);
                self.published.push(published.with_context(|| format!("in {}", alias.ident))?);
            }
            // A scaffold of the header, which it means to undefine after use.
            Item::Const(constant) if constant.ident.to_string().starts_with("RESOURCE_ABI_") => {}
            other => self.add_type(other)?,
        }
        Ok(())
    }

    fn add_function(&mut self, item: ForeignItem) -> Result<()> {
        let ForeignItem::Fn(function) = item else { bail!("the driver exports something not a function") };
        let mut parameters = Vec::new();
        for input in &function.sig.inputs {
            let FnArg::Typed(input) = input else { bail!("a C function with self") };
            let Pat::Ident(name) = &*input.pat else { bail!("a C parameter that is a pattern") };
            parameters.push((name.ident.to_string(), (*input.ty).clone()));
        }
        let signature = Signature { parameters, result: result(&function.sig.output) };
        self.functions.insert(function.sig.ident.to_string(), signature);
        Ok(())
    }

    fn add_type(&mut self, item: Item) -> Result<()> {
        match &item {
            Item::Type(alias) => {
                self.aliases.insert(alias.ident.to_string(), (*alias.ty).clone());
            }
            Item::Use(renaming) => {
                let (new, old) = renamed(&renaming.tree).context("a use of an unknown form")?;
                self.aliases.insert(new, syn::parse_str(&old)?);
            }
            Item::Const(constant) => {
                let of_type = &constant.ty;
                if *of_type == Box::new(syn::parse_quote!(CUresult)) {
                    let syn::Expr::Call(call) = &*constant.expr else { bail!("a CUresult that is no call") };
                    let value = &call.args[0];
                    let value: syn::LitInt = syn::parse_quote!(#value);
                    self.errors.push((constant.ident.to_string(), value.base10_parse()?));
                }
            }
            _ => {}
        }
        self.types.push(item);
        Ok(())
    }

    /// The names which `types` defines.
    pub fn type_names(&self) -> impl Iterator<Item = String> {
        self.types.iter().filter_map(|item| match item {
            Item::Struct(item) => Some(item.ident.to_string()),
            Item::Union(item) => Some(item.ident.to_string()),
            Item::Type(item) => Some(item.ident.to_string()),
            Item::Use(item) => renamed(&item.tree).map(|(new, _)| new),
            _ => None,
        })
    }

    /// Whether two signatures mean the same to a caller: names of parameters and of types do not matter.
    pub fn alike(&self, a: &Signature, b: &Signature) -> bool {
        let shape = |signature: &Signature| -> Vec<Type> {
            signature
                .parameters
                .iter()
                .map(|(_, of_type)| of_type)
                .chain([&signature.result])
                .map(|t| self.resolve(t))
                .collect()
        };
        shape(a) == shape(b)
    }

    /// Follows aliases to their end, through pointers.
    fn resolve(&self, of_type: &Type) -> Type {
        match of_type {
            Type::Ptr(pointer) => {
                let mut pointer = pointer.clone();
                pointer.elem = Box::new(self.resolve(&pointer.elem));
                Type::Ptr(pointer)
            }
            Type::Path(path) => {
                match path.path.get_ident().and_then(|name| self.aliases.get(&name.to_string())) {
                    Some(meaning) => self.resolve(meaning),
                    None => of_type.clone(),
                }
            }
            other => other.clone(),
        }
    }
}

/// `self::old as new`
fn renamed(tree: &UseTree) -> Option<(String, String)> {
    let UseTree::Path(path) = tree else { return None };
    let UseTree::Rename(rename) = &*path.tree else { return None };
    Some((rename.rename.to_string(), rename.ident.to_string()))
}

fn result(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => syn::parse_quote!(()),
        ReturnType::Type(_, of_type) => (**of_type).clone(),
    }
}

/// Reads `PFN_<base>_v<since>[_ptds|_ptsz]` and `Option<unsafe extern "C" fn(…) -> …>`.
fn published(name: &str, of_type: &Type) -> Result<Published> {
    let name = name.strip_prefix("PFN_").context("not a PFN_")?;
    let (name, per_thread) = split_per_thread(name);
    let (base, since) = name.rsplit_once("_v").context("without a version")?;
    let Type::Path(option) = of_type else { bail!("not a pointer to a function") };
    let last = option.path.segments.last().context("an empty path")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { bail!("not an Option") };
    let Some(GenericArgument::Type(Type::FnPtr(function))) = arguments.args.first() else {
        bail!("an Option of something not a function")
    };
    ensure!(function.abi.is_some(), "not a C function");
    let parameter = |argument: &syn::NamedArg| {
        let name = argument.name.as_ref().map(|(name, _)| name.to_string());
        (name.unwrap_or_default(), argument.ty.clone())
    };
    let parameters = function.inputs.iter().map(parameter).collect();
    let signature = Signature { parameters, result: result(&function.output) };
    Ok(Published { base: base.to_owned(), since: since.parse()?, per_thread, signature })
}

/// Takes `_ptds` or `_ptsz` off a name, and says whether there was one.
pub fn split_per_thread(name: &str) -> (&str, bool) {
    let stem = name.strip_suffix("_ptds").or_else(|| name.strip_suffix("_ptsz"));
    (stem.unwrap_or(name), stem.is_some())
}
