package latchkey;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Finds the method that plain values can be the arguments of. */
final class Arguments {
    /** What fit answers for a value that is no argument of that type: null is one. */
    private static final Object MISFIT = new Object();

    private Arguments() {}

    /**
     * A JSON value as Java has it: null, Boolean, Long, Double or String; {"list":[...]} is a List. Any other object is made by
     * the static method "of" of the type that is wanted, from the array of that name; the rest are calls of its methods, each
     * with one argument.
     */
    static Object value(JsonElement e) {
        if (e.isJsonNull()) {
            return null;
        }
        if (e.isJsonObject()) {
            JsonObject o = e.getAsJsonObject();
            return o.has("list") ? values(o.get("list")) : o;
        }
        JsonPrimitive p = e.getAsJsonPrimitive();
        if (p.isBoolean()) {
            return p.getAsBoolean();
        }
        if (p.isNumber()) {
            String text = p.getAsString();
            return text.matches("-?[0-9]+") ? (Object) Long.valueOf(text) : (Object) Double.valueOf(text);
        }
        return p.getAsString();
    }

    private static List<Object> values(JsonElement array) {
        List<Object> all = new ArrayList<>();
        for (JsonElement e : array.getAsJsonArray()) {
            all.add(value(e));
        }
        return all;
    }

    static Object invoke(Object target, String name, Object[] values) throws Exception {
        return invoke(target.getClass(), target, name, values);
    }

    private static Object invoke(Class<?> type, Object target, String name, Object[] values) throws Exception {
        for (Method m : type.getMethods()) {
            Object[] arguments = m.getName().equals(name) ? fitAll(m, values) : null;
            if (arguments != null && (target != null || Modifier.isStatic(m.getModifiers()))) {
                m.setAccessible(true); // the class may be private where its methods are public
                return m.invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(type.getSimpleName() + "." + name + Arrays.toString(values));
    }

    private static Object make(Class<?> type, JsonObject parts) throws Exception {
        Object made = invoke(type, null, "of", values(parts.get("of")).toArray());
        for (Map.Entry<String, JsonElement> part : parts.entrySet()) {
            if (!part.getKey().equals("of")) {
                invoke(made, part.getKey(), new Object[] {value(part.getValue())});
            }
        }
        return made;
    }

    private static Object[] fitAll(Method m, Object[] values) throws Exception {
        Class<?>[] types = m.getParameterTypes();
        if (m.isVarArgs() && types.length == 1) {
            Object all = fitArray(types[0].getComponentType(), values);
            return all == null ? null : new Object[] {all};
        }
        if (types.length != values.length) {
            return null;
        }
        Object[] arguments = new Object[values.length];
        for (int i = 0; i < values.length; i++) {
            arguments[i] = fit(types[i], values[i]);
            if (arguments[i] == MISFIT) {
                return null;
            }
        }
        return arguments;
    }

    private static Object fitArray(Class<?> type, Object[] values) throws Exception {
        Object all = Array.newInstance(type, values.length);
        for (int i = 0; i < values.length; i++) {
            Object argument = fit(type, values[i]);
            if (argument == MISFIT) {
                return null;
            }
            Array.set(all, i, argument);
        }
        return all;
    }

    private static Object fit(Class<?> type, Object value) throws Exception {
        if (value instanceof JsonObject parts) {
            return type.isInterface() ? make(type, parts) : MISFIT;
        }
        if (value instanceof Long n && (type == long.class || type == Long.class)) {
            return n;
        }
        if (value instanceof Long n && (type == int.class || type == Integer.class)) {
            return n.intValue();
        }
        if (value instanceof Boolean && type == boolean.class) {
            return value;
        }
        if (value instanceof String text && !type.isInstance(value)) {
            return parse(type, text);
        }
        return value == null && !type.isPrimitive() || type.isInstance(value) ? value : MISFIT;
    }

    private static Object parse(Class<?> type, String text) {
        if (type.isEnum()) {
            return constant(type, text);
        }
        if (type == Duration.class && text.startsWith("P")) {
            return Duration.parse(text);
        }
        if (type == Instant.class && text.endsWith("Z")) {
            return Instant.parse(text);
        }
        return MISFIT;
    }

    private static Object constant(Class<?> type, String text) {
        for (Object c : type.getEnumConstants()) {
            if (c.toString().equals(text)) {
                return c;
            }
        }
        return MISFIT;
    }
}
