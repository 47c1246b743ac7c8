package latchkey;

import com.baomidou.lock.DefaultLockKeyBuilder;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.aopalliance.intercept.MethodInvocation;
import org.aspectj.lang.JoinPoint;
import org.aspectj.lang.reflect.MethodSignature;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.boot.autoconfigure.klock.annotation.Klock;
import org.springframework.boot.autoconfigure.klock.core.BusinessKeyProvider;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;
import org.springframework.expression.ParseException;
import org.springframework.expression.ParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/**
 * Makes the keys that it is asked for, one JSON object a line on standard input, and answers each with one JSON line.
 *
 * <pre>
 * {"mode":"spring","text":"'order:' + #order.id","order":{"id":42}}     {"keys":["order:42"]}
 * {"mode":"lock4j","name":"pay","texts":["#order.id"],"order":{…}}      {"keys":["lock4j:pay#42"]}
 * {"mode":"klock","name":"pay","texts":["#order.id"],"order":{…}}       {"keys":["lock.pay-42"]}
 * {"mode":"java","text":"\"order:\" + order.getId()","order":{…}}       {"keys":["order:42"]}
 * </pre>
 *
 * The answer has "error" in the place of "keys" if something was thrown, or if the key is null.
 */
public final class Peer {
    private static final Gson JSON = new GsonBuilder().disableHtmlEscaping().create();

    private static final Method PAY = method();

    private final SpelExpressionParser parser = new SpelExpressionParser();
    private final JavaExpressions java = new JavaExpressions();

    /** A question. */
    static final class Question {
        String mode;
        String text;
        String name;
        List<String> texts;
        Order order;
    }

    /** What the expressions stand for: the root of Spring's cache. */
    @SuppressWarnings("unused")
    public record Root(Method method, Object[] args, Object target, Class<?> targetClass) {
        public Method getMethod() { return method; }
        public String getMethodName() { return method.getName(); }
        public Object[] getArgs() { return args; }
        public Object getTarget() { return target; }
        public Class<?> getTargetClass() { return targetClass; }
    }

    /** The annotated method. */
    public void pay(Order order) {}

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Peer peer = new Peer();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(JSON.toJson(peer.answer(JSON.fromJson(line, Question.class))));
                if (!in.ready()) {
                    out.flush();
                }
            }
        }
    }

    private Map<String, Object> answer(Question q) {
        try {
            List<String> keys = switch (q.mode) {
                case "spring" -> spring(q);
                case "lock4j" -> List.of("lock4j:" + q.name + "#" + lock4j(q));
                case "klock" -> List.of("lock." + q.name + klock(q));
                case "java" -> List.of(java.evaluate(q.text, q.order));
                default -> throw new IllegalArgumentException(q.mode);
            };
            return Map.of("keys", keys);
        } catch (Throwable e) {
            return Map.of("error", e.getClass().getSimpleName() + ": " + e.getMessage());
        }
    }

    /** What libraries that take a key for an expression do with it: each element of a list is a key of its own. */
    private List<String> spring(Question q) {
        Object[] args = {q.order};
        EvaluationContext context = new MethodBasedEvaluationContext(
                new Root(PAY, args, this, Peer.class), PAY, args, new DefaultParameterNameDiscoverer());
        Expression expression;
        try {
            expression = parser.parseExpression(q.text);
        } catch (ParseException e) {
            if (!q.text.contains("#{")) {
                throw e;
            }
            expression = parser.parseExpression(q.text, ParserContext.TEMPLATE_EXPRESSION);
        }
        Object value = expression.getValue(context);
        List<String> keys = new ArrayList<>();
        if (value instanceof Collection<?> all) {
            all.forEach(v -> keys.add(v.toString()));
        } else if (value != null && value.getClass().isArray()) {
            for (int i = 0; i < Array.getLength(value); i++) {
                keys.add(Array.get(value, i).toString());
            }
        } else {
            keys.add(value.toString());
        }
        return keys;
    }

    private String lock4j(Question q) {
        MethodInvocation invocation = new MethodInvocation() {
            @Override public Method getMethod() { return PAY; }
            @Override public Object[] getArguments() { return new Object[] {q.order}; }
            @Override public Object proceed() { return null; }
            @Override public Object getThis() { return Peer.this; }
            @Override public AccessibleObject getStaticPart() { return PAY; }
        };
        return new DefaultLockKeyBuilder(new DefaultListableBeanFactory()).buildKey(invocation, q.texts.toArray(new String[0]));
    }

    private String klock(Question q) {
        MethodSignature signature = proxy(MethodSignature.class, Map.of("getMethod", PAY, "getName", PAY.getName()));
        JoinPoint point = proxy(JoinPoint.class, Map.of("getSignature", signature, "getArgs", new Object[] {q.order}, "getTarget", this));
        Klock klock = proxy(Klock.class, Map.of("keys", q.texts.toArray(new String[0]), "annotationType", (Class<? extends Annotation>) Klock.class));
        return new BusinessKeyProvider().getKeyName(point, klock);
    }

    /** An object whose methods return these values. */
    private static <T> T proxy(Class<T> type, Map<String, Object> values) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, m, args) -> values.get(m.getName())));
    }

    private static Method method() {
        try {
            return Peer.class.getMethod("pay", Order.class);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }
}
