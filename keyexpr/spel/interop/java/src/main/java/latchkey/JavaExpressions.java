package latchkey;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Compiles expressions of Java, each once, and evaluates them. */
final class JavaExpressions {
    private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    private final Map<String, Object> compiled = new HashMap<>(); // a Method, or what the compiler said

    String evaluate(String expression, Order order) throws Throwable {
        Object method = compiled.computeIfAbsent(expression, this::compile);
        if (!(method instanceof Method m)) {
            throw new IllegalArgumentException(method.toString());
        }
        try {
            return (String) m.invoke(null, order);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private Object compile(String expression) {
        String name = "E" + compiled.size();
        String source = "public class " + name + " { public static String e(latchkey.Order order) {"
                + " Object key = " + expression + "; return key.toString(); } }";
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        JavaFileManager files = new ForwardingJavaFileManager<>(compiler.getStandardFileManager(null, null, null)) {
            @Override
            public JavaFileObject getJavaFileForOutput(Location at, String className, JavaFileObject.Kind kind, FileObject sibling) {
                return new SimpleJavaFileObject(URI.create("mem:///" + className + ".class"), kind) {
                    @Override
                    public OutputStream openOutputStream() {
                        return bytes;
                    }
                };
            }
        };
        JavaFileObject file = new SimpleJavaFileObject(URI.create("mem:///" + name + ".java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return source;
            }
        };
        StringBuilder said = new StringBuilder();
        boolean ok = compiler.getTask(null, files, d -> said.append(d.getMessage(null)).append(' '),
                List.of("-classpath", System.getProperty("java.class.path"), "-proc:none"), null, List.of(file)).call();
        if (!ok) {
            return said.toString();
        }
        ClassLoader loader = new ClassLoader(JavaExpressions.class.getClassLoader()) {
            @Override
            protected Class<?> findClass(String wanted) {
                return defineClass(wanted, bytes.toByteArray(), 0, bytes.size());
            }
        };
        try {
            return loader.loadClass(name).getMethod("e", Order.class);
        } catch (ReflectiveOperationException e) {
            return e.toString();
        }
    }
}
