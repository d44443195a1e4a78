//! The two rules as a model, in which every order of events can be tried.
