"""Group and dedup keys: templates over a call's bound arguments, or callables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import BoundArguments, Parameter, Signature, signature
from string import Formatter
from typing import Any, Final

from groupjobs.errors import Refused, RefusedArgument
from groupjobs.policy.keys import checked_key
from groupjobs.policy.options import Policy

FORMATTER: Final = Formatter()

NAMEABLE: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

Key = str | Callable[..., Any]
Piece = tuple[str, str | None, str | None, str | None]


def bound(job: str, parameters: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """The call's arguments by name, defaults filled in; RefusedArgument when they do not fit."""
    named = None if args else _named(parameters, kwargs)
    if named is not None:
        return named
    try:
        arguments = parameters.bind(*args, **kwargs)
    except TypeError as error:
        raise RefusedArgument(f"the arguments do not fit {parameters}: {error}", job=job) from None
    arguments.apply_defaults()
    return arguments


def _named(parameters: Signature, kwargs: Mapping[str, Any]) -> BoundArguments | None:
    """What `bind` and `apply_defaults` make of a plain call by name, several times faster; None for any other call."""
    found, taken = {}, 0
    for name, parameter in parameters.parameters.items():
        if parameter.kind not in NAMEABLE:
            return None
        if name in kwargs:
            found[name] = kwargs[name]
            taken += 1
        elif parameter.default is parameter.empty:
            return None
        else:
            found[name] = parameter.default
    return BoundArguments(parameters, found) if taken == len(kwargs) else None


def group_of(policy: Policy, job: str, parameters: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The group of a call with these normalised arguments, '' for none; checks that the arguments fit.

    Raises Refused for None or an empty value inside the template, and for a group that is empty, longer
    than 255 characters, or holds NUL or a lone surrogate.
    """
    arguments = bound(job, parameters, args, kwargs)
    if policy.literal_group is not None:
        return policy.literal_group
    return _key_of(policy.group, job, "group", arguments) or ""


def dedup_of(
    policy: Policy, job: str, parameters: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """The key under which at most one run may be live, None for no such limit; refuses as `group_of` does."""
    if policy.dedup is None:
        return None
    return _key_of(policy.dedup, job, "dedup", bound(job, parameters, args, kwargs))


def _key_of(key: Key | None, job: str, option: str, arguments: BoundArguments) -> str | None:
    if key is None:
        return None
    made = _filled(key, job, option, arguments) if isinstance(key, str) else _called(key, job, option, arguments)
    try:
        return None if made is None else checked_key(made)
    except ValueError as error:
        raise Refused(f"{option} {error}", job=job, subject=option) from None


def _filled(template: str, job: str, option: str, arguments: BoundArguments) -> str:
    values = _values(arguments)
    try:
        return "".join(
            literal if field is None else literal + _piece(field, spec, conversion, values)
            for literal, field, spec, conversion in _pieces(template)
        )
    except ValueError as error:
        raise Refused(f"{option} {template!r} {error}", job=job, subject=option) from None


def _piece(field: str, spec: str | None, conversion: Any, values: Mapping[str, Any]) -> str:
    try:
        value, _ = FORMATTER.get_field(field, (), values)
        empty = value is None or value in ("", [], {})
        text = "" if empty else format(FORMATTER.convert_field(value, conversion), spec or "")
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"cannot be filled in: {{{field}}} gives {type(error).__name__}: {error}") from None
    if not text:
        raise ValueError(f"needs a value for {field!r}, which is {value!r}; pass one")
    return text


def _values(arguments: BoundArguments) -> dict[str, Any]:
    """The bound arguments by name, with what `**kwargs` took in beside them."""
    values = dict(arguments.arguments)
    for name, parameter in arguments.signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            values |= values.pop(name)
    return values


def _called(key: Callable[..., Any], job: str, option: str, arguments: BoundArguments) -> Any:
    """By name where the callable can take it so (it may leave some to `**rest`), else as the job is called.

    What it raises is its own, with a note of whose it is.
    """
    try:
        if _by_name(arguments.signature) and _takes(key, tuple(arguments.signature.parameters)):
            return key(**arguments.arguments)
        return key(*arguments.args, **arguments.kwargs)
    except Exception as error:
        error.add_note(f"Raised by the callable that is the option {option!r} of job {job!r}.")
        raise


def _by_name(parameters: Signature) -> bool:
    return all(parameter.kind in NAMEABLE for parameter in parameters.parameters.values())


@lru_cache(maxsize=1024)
def _takes(key: Callable[..., Any], names: tuple[str, ...]) -> bool:
    try:
        signature(key).bind(**dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


@lru_cache(maxsize=1024)
def _pieces(template: str) -> tuple[Piece, ...]:
    return tuple(FORMATTER.parse(template))


def check_key(job: str, option: str, key: Key | None, parameters: Signature) -> None:
    """Refused unless the template names only arguments of the job, or the callable takes them.

    Done when the job is defined, so that a typing error is seen before anything is enqueued.
    """
    try:
        if isinstance(key, str):
            _check_template(key, parameters)
        elif key is not None:
            _check_callable(key, parameters)
    except ValueError as error:
        raise Refused(f"{option} {error}", job=job, subject=option) from None


def _check_template(template: str, parameters: Signature) -> None:
    known = [name for name, parameter in parameters.parameters.items() if parameter.kind is not Parameter.VAR_KEYWORD]
    open_ended = len(known) < len(parameters.parameters)
    for field, name in _fields(template):
        if name in known or (open_ended and name.isidentifier()):
            continue
        taken = ", ".join(known) or "nothing"
        raise ValueError(f"{template!r} names {{{field}}}, and the job has no argument {name!r}; it takes {taken}")


def _fields(template: str) -> Iterator[tuple[str, str]]:
    try:
        pieces = _pieces(template)
    except ValueError as error:
        raise ValueError(f"{template!r} is no template: {error}; write {{{{ and }}}} for literal braces") from None
    for _, field, spec, _ in pieces:
        if spec and "{" in spec:
            raise ValueError(f"{template!r} has a field inside a format specification, which is not supported")
        if field is not None:
            yield field, field.split(".")[0].split("[")[0]


def _check_callable(key: Callable[..., Any], parameters: Signature) -> None:
    if _by_name(parameters) and _takes(key, tuple(parameters.parameters)):
        return
    call = parameters.bind_partial()
    call.arguments.update({name: () if _is_rest(item) else None for name, item in parameters.parameters.items()})
    try:
        signature(key).bind(*call.args, **call.kwargs)
    except ValueError:
        return  # a builtin that does not tell
    except TypeError as error:
        raise ValueError(f"callable cannot take the arguments of the job, {parameters}: {error}") from None


def _is_rest(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
